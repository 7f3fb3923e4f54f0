// parts/States: waiting, failed, or nothing there -> what a page says then. The same everywhere, so that it is known.
import type { ComponentChildren } from "preact";
import { href } from "../address.ts";
import type { Problem } from "../api/client.ts";
import { lineageOf } from "../nodes.ts";
import { writeRoute } from "../route.ts";
import type { Asked } from "./use.ts";

export function Waiting({ rows = 4 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} />
      ))}
    </div>
  );
}

export function Fault({ fault, again }: { fault: Problem; again?: () => void }) {
  return (
    <div class="fault" role="alert">
      <p>{fault.message.split("\n")[0]}</p>
      {fault.candidates.length > 0 && (
        <ul>
          {fault.candidates.map((id) => (
            <li key={id}>
              <a href={href(writeRoute(lineageOf(id)))}>{id}</a>
            </li>
          ))}
        </ul>
      )}
      <p class="muted">
        {again && (
          <button type="button" onClick={again}>
            Try again
          </button>
        )}{" "}
        {fault.request && <>Request {fault.request}</>}
      </p>
    </div>
  );
}

export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** Shows an answer when it is there, and what is in its place until then. */
export function Answer<T>({
  of,
  children,
  rows,
}: {
  of: Asked<T>;
  children: (data: T) => ComponentChildren;
  rows?: number;
}) {
  if (of.data === undefined)
    return of.fault ? <Fault fault={of.fault} again={of.again} /> : <Waiting rows={rows ?? 4} />;
  return (
    <>
      {of.fault && <Fault fault={of.fault} again={of.again} />}
      {children(of.data)}
    </>
  );
}
