"""store.migrations: an older store -> this version's format, one step a file."""
