"""store._versions: names of datasets, or runs -> the versions written, current and read: the statements that find them."""

from headwater.store._driver import among

_IDS = among()
WRITES = (
    'SELECT o.dataset, o.first_seen, o.run, r.run_id, o."schema", o.lifecycle, o.last_seen FROM outputs AS o'
    f" JOIN runs AS r ON r.id = o.run WHERE o.dataset IN {_IDS}"
    " UNION ALL SELECT d.dataset, d.at, NULL, '', d.\"schema\", NULL, d.at FROM described AS d"
    f" WHERE d.dataset IN {_IDS}"
)
# A run that wrote one dataset under several names made one version of it. Which name's row stands for it is decided by
# what the rows say, not by their numbers: those depend on the order of arrival.
WRITES_ONCE = (
    'SELECT dataset, first_seen, run, run_id, "schema", lifecycle, until FROM ('
    'SELECT dataset, first_seen, run, run_id, "schema", lifecycle,'
    " max(last_seen) OVER (PARTITION BY run_id, CASE WHEN run IS NULL THEN first_seen END) AS until,"
    " row_number() OVER (PARTITION BY run_id, CASE WHEN run IS NULL THEN first_seen END"
    ' ORDER BY first_seen, "schema" IS NULL, "schema", lifecycle IS NULL, lifecycle) AS place'
    f" FROM ({WRITES}) AS w) AS v WHERE place = 1"
)
CURRENT = (
    'SELECT o.dataset, o.first_seen, o.run, r.run_id, o."schema", o.lifecycle, o.last_seen FROM datasets AS d'
    " JOIN outputs AS o ON o.dataset = d.id AND o.run = (SELECT y.run FROM outputs AS y"
    " JOIN runs AS x ON x.id = y.run WHERE y.dataset = d.id {also}"
    " ORDER BY y.first_seen DESC, x.run_id DESC LIMIT 1)"
    f" JOIN runs AS r ON r.id = o.run WHERE d.id IN {_IDS}"
)
DESCRIBED = (
    'SELECT d.dataset, d.at, NULL, NULL, d."schema", NULL, d.at FROM described AS d'
    " WHERE d.at = (SELECT max(x.at) FROM described AS x WHERE x.dataset = d.dataset)"
    f" AND d.dataset IN {_IDS}"
)
WRITTEN = (
    f"SELECT e.dataset FROM edges AS e WHERE e.direction = 'out' AND e.dataset IN {_IDS}"
    " UNION SELECT m.id FROM datasets AS m JOIN datasets AS n ON n.canonical = m.canonical"
    f" JOIN edges AS e ON e.dataset = n.id AND e.direction = 'out' WHERE m.id IN {_IDS}"
)
READ = (
    'SELECT i.run, i.dataset, o.dataset, o.first_seen, o.run, r.run_id, o."schema", o.lifecycle, o.last_seen FROM inputs AS i'
    " JOIN outputs AS o ON o.dataset = i.dataset AND o.run = (SELECT y.run FROM outputs AS y"
    " JOIN runs AS x ON x.id = y.run WHERE y.dataset = i.dataset AND y.first_seen <= i.first_seen AND y.run <> i.run {also}"
    " ORDER BY y.first_seen DESC, x.run_id DESC LIMIT 1)"
    f" JOIN runs AS r ON r.id = o.run WHERE i.run IN {_IDS}"
)
READ_ALIAS = (
    'SELECT i.run, i.dataset, o.dataset, o.first_seen, o.run, r.run_id, o."schema", o.lifecycle, o.last_seen FROM inputs AS i'
    " JOIN datasets AS m ON m.id = i.dataset JOIN datasets AS n ON n.canonical = m.canonical AND n.id <> m.id"
    " JOIN outputs AS o ON o.dataset = n.id AND o.run = (SELECT y.run FROM outputs AS y"
    " JOIN runs AS x ON x.id = y.run WHERE y.dataset = n.id AND y.first_seen <= i.first_seen AND y.run <> i.run {also}"
    " ORDER BY y.first_seen DESC, x.run_id DESC LIMIT 1)"
    f" JOIN runs AS r ON r.id = o.run WHERE i.run IN {_IDS}"
)
READ_TOLD = (
    'SELECT i.run, i.dataset, d.dataset, d.at, NULL, NULL, d."schema", NULL, d.at FROM inputs AS i'
    " JOIN described AS d ON d.dataset = i.dataset AND d.at ="
    " (SELECT max(x.at) FROM described AS x WHERE x.dataset = i.dataset AND x.at <= i.first_seen)"
    f" WHERE i.run IN {_IDS}"
)
