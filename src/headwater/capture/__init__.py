"""capture: something ran -> OpenLineage events; knows nothing of transports.

Each capture is a folder: what records it (a probe in the host's process, light and guarded), and a pure function
`interpret(record, state) -> events` that understands the records, tested without the host.

To add one: write capture/<name>/ with `interpret`, a door headwater/<name>.py that wires it to the emitter, recorded
records under tests/capture/<name>/, and its page in docs/.
"""
