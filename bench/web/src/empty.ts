// empty: nothing -> how long a page takes that has nothing to show.
import { shown, tell } from "./measure.ts";

document.getElementById("root")!.textContent = "nothing";
tell({ painted: (await shown()) / 1000 });
