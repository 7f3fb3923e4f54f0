// main: the address -> a page. One line a page; the rest of the UI hangs below them.
import "./style.css";
import { render } from "preact";

render(<main>Headwater</main>, document.getElementById("root")!);
