// pages/Head: what every dataset and job begins with: its name, owners, tags, description; and the means to say them.
import { useState } from "preact/hooks";
import { href, say } from "../address.ts";
import { key, Problem, tell } from "../api/client.ts";
import type { Owner, Server, Tag } from "../api/model.ts";
import { clip, count } from "../format.ts";
import { lineageOf } from "../nodes.ts";
import { Fault } from "../parts/States.tsx";
import { useAsk } from "../parts/use.ts";
import { Kind, Time } from "../parts/Words.tsx";
import { writeRoute } from "../route.ts";

interface Shown {
  id: string;
  namespace: string;
  name: string;
  description: string | null;
  owners: Owner[];
  tags: Tag[];
  firstSeen: string | null;
  lastSeen: string | null;
}

/** How many letters of a name a title shows. */
const LONGEST = 240;

export const tagName = (tag: Tag | string): string =>
  typeof tag === "string" ? tag : (tag.key ?? tag.tag ?? tag.name ?? "");

export function Head({ of, kind }: { of: Shown; kind: "dataset" | "job" }) {
  return (
    <header class="head">
      <p class="muted">
        <bdi class="long">{clip(of.namespace, LONGEST)}</bdi>
      </p>
      <h1>
        <Kind kind={kind} /> <Long name={of.name} />
      </h1>
      <p>
        <a class="strong" href={href(writeRoute(lineageOf(of.id)))}>
          Lineage
        </a>{" "}
        <a href={href(writeRoute(lineageOf(of.id)), { mode: "impact", up: "0" })}>What it breaks</a>{" "}
        {of.tags.map((tag) => (
          <span class="badge" key={tagName(tag)}>
            {tagName(tag)}
          </span>
        ))}
        <span class="muted">
          {" "}
          first seen <Time of={of.firstSeen} />, last <Time of={of.lastSeen} />
          {of.owners.length > 0 && <> · owned by {of.owners.map((each) => each.name).join(", ")}</>}
        </span>
      </p>
      {of.description && <p>{of.description}</p>}
    </header>
  );
}

/** A name; of one that would fill the page, its ends and how to see the rest. */
function Long({ name }: { name: string }) {
  const [whole, setWhole] = useState(false);
  const shown = clip(name, LONGEST);
  return (
    <>
      <bdi class="long">{whole ? name : shown}</bdi>
      {shown !== name && (
        <button type="button" aria-expanded={whole} onClick={() => setWhole(!whole)}>
          {whole ? "Shorten" : `All ${count([...name].length)} letters`}
        </button>
      )}
    </>
  );
}

export function Tabs({ names, at }: { names: string[]; at: string }) {
  return (
    <div class="tabs" role="group" aria-label="Parts">
      {names.map((name) => (
        <button
          key={name}
          type="button"
          aria-pressed={name === at}
          onClick={() => say({ tab: name === names[0] ? undefined : name })}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

/** Whether this reader may change something: asked of the server, which also refuses. */
export function useMayChange(): boolean {
  key.value;
  const server = useAsk<Server>("/hw/v1/server");
  if (!server.data || server.data.read_only) return false;
  return server.data.auth === "off" || server.data.caller.scopes.includes("admin");
}

export function Edit({ of, done }: { of: Shown; done: () => void }) {
  const may = useMayChange();
  const [fault, setFault] = useState<Problem | null>(null);
  const [open, setOpen] = useState(false);
  if (!may) return null;
  if (!open)
    return (
      <button type="button" onClick={() => setOpen(true)}>
        Describe it
      </button>
    );
  const list = (text: string) =>
    text
      .split(",")
      .map((each) => each.trim())
      .filter(Boolean);
  return (
    <form
      class="filters"
      onSubmit={(event) => {
        event.preventDefault();
        const form = new FormData(event.currentTarget);
        const tags = list(String(form.get("tags")));
        const had = of.tags.map(tagName);
        const body = {
          node: of.id,
          description: String(form.get("description")) || null,
          owners: list(String(form.get("owners"))).length ? list(String(form.get("owners"))) : null,
          add_tags: tags.filter((each) => !had.includes(each)),
          remove_tags: had.filter((each) => !tags.includes(each)),
        };
        tell("PATCH", "/hw/v1/nodes", body).then(
          () => {
            setOpen(false);
            done();
          },
          (failed: unknown) => failed instanceof Problem && setFault(failed),
        );
      }}
    >
      <label>
        description <input name="description" value={of.description ?? ""} />
      </label>
      <label>
        owners <input name="owners" value={of.owners.map((each) => each.name).join(", ")} />
      </label>
      <label>
        tags <input name="tags" value={of.tags.map(tagName).join(", ")} />
      </label>
      <button type="submit" class="strong">
        Save
      </button>
      <button type="button" onClick={() => setOpen(false)}>
        Cancel
      </button>
      {fault && <Fault fault={fault} />}
    </form>
  );
}
