// parts/Caught: a page that fails to show -> what went wrong and how to go on, in the place of an empty screen.
import { Component, type ComponentChildren } from "preact";
import { href } from "../address.ts";

interface Props {
  /** Another address is another try. */
  at: string;
  children: ComponentChildren;
}

export class Caught extends Component<Props, { fault: Error | null }> {
  state = { fault: null as Error | null };

  componentDidCatch(fault: Error): void {
    console.error(fault);
    this.setState({ fault });
  }

  componentDidUpdate(before: Props): void {
    if (before.at !== this.props.at && this.state.fault) this.setState({ fault: null });
  }

  render() {
    const { fault } = this.state;
    if (!fault) return <>{this.props.children}</>;
    return (
      <div class="page">
        <h1>This page could not be shown</h1>
        <p class="fault" role="alert">
          {fault.message}
        </p>
        <p>
          <button type="button" onClick={() => this.setState({ fault: null })}>
            Try again
          </button>{" "}
          <a href={href("/")}>Home</a>
        </p>
      </div>
    );
  }
}
