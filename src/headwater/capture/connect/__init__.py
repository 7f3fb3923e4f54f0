"""capture.connect: what a Kafka Connect cluster answers -> OpenLineage events, without touching a connector.

    answers -> Snapshot -> (connectors, transforms, schemas) -> Lineage ┐
                     └──────── lifecycle.step(state, snapshot, now) ────┴-> events

Everything here is pure: nothing asks a server. The door `headwater.connect` asks Connect and the schema registry, keeps the
state and hands the events to the emitter.

To teach it a connector, add an entry to connectors.toml; to teach it a transform, a function and a line in `smt`.
"""
