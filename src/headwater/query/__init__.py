"""query: a question -> a model: the one loader behind the CLI, the HTTP API and the UI.

nodes     a name as people write it -> the node; a node -> its id
lineage   a node, a direction, a depth, a time -> the graph around it
search    a few letters -> the nodes that hold them
show      a node or a run -> all that is known of it
marquez   a question as Marquez's clients ask it -> the model that they expect
incidents    the store and a clock -> what is wrong
correlation  tested datasets that nobody writes, and rules that would help
blame     an incident -> who is to blame, who is suspect, what is hit
status    the store -> how much there is, and what was refused
"""
