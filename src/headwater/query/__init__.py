"""query: a question -> a model: the one loader behind the CLI, the HTTP API and the UI.

nodes     a name as people write it -> the node; a node -> its id
runs      a job, a state, a time -> runs; a run -> where its data came from and went to
lineage   a node, a direction, a depth, a time -> the graph around it
impact    a node or a column -> what breaks downstream, ranked
schemas   a dataset -> the schemas it has had, and what each changed
diff      two times -> what differs between them
search    a few letters -> the nodes that hold them
show      a node or a run -> all that is known of it
marquez   a question as Marquez's clients ask it -> the model that they expect
incidents    the store and a clock -> what is wrong
correlation  tested datasets that nobody writes, and rules that would help
blame     an incident -> who is to blame, who is suspect, what is hit
events    the raw log -> events as they came
edits     what people say -> commands, and what a rule would do
status    the store -> how much there is, and what was refused
"""
