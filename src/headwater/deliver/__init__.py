"""deliver: what happened here -> another system's words, and on their way to it.

webhook   what became of incidents, runs and schemas -> signed messages to any url

To add one: write deliver/<name>.py with pure functions that make the other's words, and one that sends them; what
runs by itself is a job in `work`.
"""
