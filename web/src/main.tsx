// main: the address -> a page. One line a page; the rest of the UI hangs below them.
import "./style.css";
import { render } from "preact";
import { followLinks, href, route } from "./address.ts";
import { startNews } from "./api/news.ts";
import { Explorer } from "./explorer/Explorer.tsx";
import { Admin } from "./pages/Admin.tsx";
import { Dataset } from "./pages/Dataset.tsx";
import { Events, Rejected } from "./pages/Events.tsx";
import { Home } from "./pages/Home.tsx";
import { IncidentPage } from "./pages/Incident.tsx";
import { Incidents } from "./pages/Incidents.tsx";
import { Job } from "./pages/Job.tsx";
import { Listing } from "./pages/Lists.tsx";
import { RunPage, Runs } from "./pages/Runs.tsx";
import { Start } from "./pages/Start.tsx";
import { Frame } from "./parts/Frame.tsx";

function Page() {
  const at = route.value;
  switch (at.page) {
    case "home":
      return <Home />;
    case "lineage":
      return <Explorer />;
    case "datasets":
      return <Listing key="datasets" type="dataset" />;
    case "jobs":
      return <Listing key="jobs" type="job" />;
    case "dataset":
      return <Dataset key={`${at.namespace} ${at.name}`} namespace={at.namespace} name={at.name} />;
    case "job":
      return <Job key={`${at.namespace} ${at.name}`} namespace={at.namespace} name={at.name} />;
    case "runs":
      return <Runs />;
    case "run":
      return <RunPage key={at.id} id={at.id} />;
    case "events":
      return <Events />;
    case "rejected":
      return <Rejected />;
    case "incidents":
      return <Incidents />;
    case "incident":
      return <IncidentPage key={at.id} id={at.id} />;
    case "start":
      return <Start />;
    case "admin":
      return <Admin />;
    default:
      return (
        <div class="page">
          <h1>No such page</h1>
          <p>
            Nothing stands at <code>{at.path}</code>. <a href={href("/")}>Search for it</a>.
          </p>
        </div>
      );
  }
}

followLinks();
startNews();
render(
  <Frame>
    <Page />
  </Frame>,
  document.getElementById("root")!,
);
