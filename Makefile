# Everything sets itself up: `make demo` and `make test` need Python >= 3.10 (and Java, for what Spark does).
#   make demo             make test              make help

PYTHON ?= python3
HEADWATER_SCALE ?= 0.05
WORKERS ?= 2

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# the tests start thousands of Pythons: one that may not keep what it compiled compiles each module anew, half of its start
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
READY := .venv/.ready
# a uv that only looks installed (a version manager's shim, say) does not count
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo .tools/bin/uv)
BENCHES := $(notdir $(basename $(wildcard bench/ingest.py bench/backend.py bench/graph.py bench/questions.py bench/incidents.py bench/transport.py bench/spark_overhead.py bench/pipeline.py bench/airflow.py bench/dlt.py bench/connect.py bench/datahub.py bench/web.py bench/month.py)))
BACKEND := tests/facts tests/store tests/serve tests/transport tests/bench tests/test_event.py tests/test_graph.py tests/test_ingest.py
# each Spark with what its own Python side can work with
SPARKS := 3.5 4.0 4.3
SPARK_3.5 := 'pyspark==3.5.*' 'numpy<2' 'pyarrow<18' 'pandas<2.3' setuptools
SPARK_4.0 := 'pyspark[connect]==4.0.*' 'pyarrow<24' 'pandas<3'
SPARK_4.3 := 'pyspark[connect]==4.3.*' 'pyarrow>=18' 'pandas<3'
SPARK_TESTS := pytest pytest-xdist hypothesis jsonschema rfc3339-validator 'sqlglot==30.12.0'
# each Airflow with its own SQLAlchemy, never in .venv
AIRFLOWS := 3 2.11
AIRFLOW_3 := 'apache-airflow==3.3.*'
AIRFLOW_2.11 := 'apache-airflow==2.11.*' 'sqlalchemy<2'
AIRFLOW_ALL := 'apache-airflow-providers-openlineage>=2.20,<3' apache-airflow-providers-standard \
	'apache-airflow-providers-apache-spark>=6,<7'
# older dlts, each in an environment of its own
DLTS := 1.20 1.25
DLT_TESTS := pytest pytest-xdist hypothesis jsonschema rfc3339-validator 'psycopg[binary]' 'pandas<3' 'pyarrow>=18' deltalake
# so that a test's JVM need not load each of Spark's classes by itself
CLASSES := scripts/class_archive.py
# what `make test` has run in the same environment, and would run just so again, is left out: see tests/conftest.py
LIVE_TESTS := HEADWATER_SCALE=1 HEADWATER_LIVE=more
# the files of a live stack side by side, each with its own servers: half of the time is spent waiting for them to start
SIDE_BY_SIDE = -m pytest -n $(WORKERS) --dist loadfile $(SLOWEST)
# where a file holds what takes longest: a worker that has nothing left takes from the other's end, and starts its own Spark for it
STEALING = -m pytest -n $(WORKERS) --dist worksteal $(SLOWEST)
# where tests say which of them share what takes longest to make
GROUPED = -m pytest -n $(WORKERS) --dist loadgroup $(SLOWEST)
SLOWEST := --durations 10 --durations-min 30
# of Sparks and dlts beside those in .venv: every case, but fewer examples, and 500 queries in a row instead of 10,000
OTHERS := 0.05
# the longest first
LIVE := live-backend live-spark-4.1 live-pipeline $(SPARKS:%=live-spark-%) live-airflow live-dlt live-story live-kafka live-datahub live-web live-demo
LANES ?= 2
ENVIRONMENTS = $(SPARKS:%=.venvs/spark-%/.ready) $(AIRFLOWS:%=.venvs/airflow-%/.ready) $(DLTS:%=.venvs/dlt-%/.ready) .venvs/datahub/.ready
DATAHUB := 'acryl-datahub[datahub-rest,datahub-kafka]==1.7.*' msgspec
CODE := src tests bench scripts
# the web UI: built into the package, so that whoever installs it needs no Node
WEB := src/headwater/serve/built/index.html
WEB_SOURCES := $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/shots/*' -not -path 'web/browser/*' -not -path 'web/test/*')
WEB_READY := web/node_modules/.ready
NODE := $(shell node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null && echo node)
NO_NODE := needs Node 20.19 or newer with npm (Debian: apt install nodejs npm, or see nodejs.org)

.PHONY: help setup classes check check-web test test-web test-pythons web web-if-node smoke live live-jars live-spark $(LIVE) bench results demo docs lock dist sbom clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## make .venv with every extra and tool; done by the others where needed

classes: $(READY) ## an archive of the classes that Spark loads, once: the JVMs of tests then start with half of the CPU; done by the others
	@$(BIN)/python $(CLASSES)

.tools/bin/uv:
	@echo "getting uv into .tools"
	@$(PYTHON) -m venv .tools && .tools/bin/python -m pip install --quiet --disable-pip-version-check uv \
		|| { rm -rf .tools && $(PYTHON) -m pip install --quiet --disable-pip-version-check --target .tools uv; } \
		|| { rm -rf .tools; echo "cannot get uv: neither '$(PYTHON) -m venv' nor pip works here. Install uv, or" \
		     "Python with venv and pip (Debian: apt install python3-venv), and try again" >&2; exit 1; }

$(READY): pyproject.toml locks/dev.txt | $(filter .tools/bin/uv,$(UV))
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(v < (3, 10) and \
		f"Python 3.10 or newer is needed, this is {v[0]}.{v[1]}: make PYTHON=python3.12 …")'
	@echo "setting up .venv"
	@test -x $(BIN)/python || $(UV) venv --quiet --no-project --python "$$(command -v $(PYTHON))" .venv
	@VIRTUAL_ENV="$(CURDIR)/.venv" $(UV) pip sync --quiet locks/dev.txt
	@VIRTUAL_ENV="$(CURDIR)/.venv" $(UV) pip install --quiet --no-deps --editable .
	@touch $@

web: $(WEB) ## build the web UI into the package (needs Node 20.19 or newer)

# `npm ci` would ask for binaries of every other system, and fail where a registry lacks one of them; the lock holds all the same
$(WEB_READY): web/package.json web/package-lock.json web/.npmrc
	@test -n "$(NODE)" || { echo "the web UI $(NO_NODE)" >&2; exit 1; }
	@echo "getting what the web UI is built with"
	@cd web && npm install --no-save --silent --no-audit --no-fund && touch node_modules/.ready

$(WEB): $(WEB_SOURCES) $(WEB_READY)
	@cd web && npm run --silent build -- --logLevel warn

# where Node is missing, the rest goes on: the server says on its page what is missing
web-if-node:
	@if test -n "$(NODE)"; then $(MAKE) web; \
	else echo "without its web UI, which $(NO_NODE)"; test "$${HEADWATER_REQUIRE_LIVE:-}" != 1; fi

check-web:
	@if test -n "$(NODE)"; then $(MAKE) $(WEB_READY) && (cd web && npm run --silent types && npm run --silent lint) \
		&& $(PYTHON) scripts/npm_audit.py web; \
	else echo "web UI not checked: it $(NO_NODE)"; test "$${HEADWATER_REQUIRE_LIVE:-}" != 1; fi

test-web:
	@if test -n "$(NODE)"; then $(MAKE) $(WEB_READY) && cd web && npm run --silent test; \
	else echo "web UI not tested: it $(NO_NODE)"; test "$${HEADWATER_REQUIRE_LIVE:-}" != 1; fi

live-web: $(READY) $(WEB) ## the web UI in Chromium against real servers; pictures of it in web/shots
	@cd web && npm run --silent browser

check: $(READY) check-web ## lint, format, types, locks, layout; of the web UI, too
	@$(BIN)/ruff check --quiet $(CODE)
	@$(BIN)/ruff format --check --quiet --output-format concise $(CODE)
	@$(BIN)/mypy
	@$(BIN)/python scripts/locks.py check
	@$(BIN)/python -m pytest -qq -p no:cacheprovider tests/test_layout.py
	@echo "check: nothing wrong"

test: classes test-web ## every test but the live ones; repeats cut by HEADWATER_SCALE (0.05), WORKERS=2 at a time
	@HEADWATER_SCALE=$(HEADWATER_SCALE) $(BIN)/python -m pytest -n $(WORKERS)

test-pythons: $(READY) ## the light tests and the server's on each Python that is here; those that are not are named
	@$(BIN)/python scripts/pythons.py --uv "$(UV)" --workers $(WORKERS)

live: classes live-jars $(ENVIRONMENTS) $(WEB) ## every live stack, at scale 1, LANES=2 of them side by side
	@$(BIN)/python scripts/live.py --lanes $(LANES) $(LIVE)

live-backend: $(READY) ## facts, store, graph, server and spool at scale 1: all examples, 270 kills
	@$(BIN)/python scripts/live_jars.py broker
	@$(LIVE_TESTS) $(BIN)/python $(STEALING) $(BACKEND)

live-jars: $(READY) ## the jars of the live tests from Maven, once, into ~/.cache/headwater (or HEADWATER_LIVE_JARS); JARS=… for some
	@$(BIN)/python scripts/live_jars.py $(JARS)

smoke: classes .venvs/airflow-3/.ready .venvs/datahub/.ready $(WEB) ## a short run on each real stack: the web UI in Chromium, DataHub's SDK, Delta and Kafka under Spark, Kafka Connect, a Spark job of Airflow 3
	@cd web && npm run --silent browser -- flows
	@$(BIN)/python scripts/live_jars.py spark-4.1 broker connect
	@HEADWATER_LIVE=1 $(BIN)/python -m pytest tests/capture/spark/test_live_formats.py -k 'delta or kafka'
	@HEADWATER_LIVE=1 $(BIN)/python -m pytest tests/deliver/datahub/test_validation.py tests/deliver/datahub/test_bad_input.py
	@HEADWATER_LIVE=1 $(BIN)/python -m pytest tests/capture/connect/test_live_smoke.py
	@HEADWATER_LIVE=1 $(BIN)/python -m pytest tests/live_airflow/test_spark_submit.py -k '[3]'

live-spark: live-spark-4.1 $(SPARKS:%=live-spark-%) ## the Spark programs live on 4.1 at scale 1, and on 4.0, 3.5 and 4.3 with fewer repeats, each in an environment of its own

live-spark-4.1: classes live-jars
	@$(LIVE_TESTS) $(BIN)/python $(GROUPED) tests/capture/spark

$(SPARKS:%=live-spark-%): live-spark-%: live-jars .venvs/spark-%/.ready
	@echo "== Spark $*"
	@if test -x .venvs/spark-$*/bin/python; then \
		.venvs/spark-$*/bin/python $(CLASSES); \
		HEADWATER_SCALE=$(OTHERS) HEADWATER_LIVE=1 .venvs/spark-$*/bin/python $(GROUPED) tests/capture/spark/test_live.py \
			tests/capture/spark/test_live_formats.py tests/capture/spark/test_live_process.py; \
	else \
		echo "skipped: $$(cat .venvs/spark-$*/.ready)"; test "$${HEADWATER_REQUIRE_LIVE:-}" != 1; \
	fi

live-kafka: classes live-jars ## two Connect workers with Debezium, JDBC, Iceberg and a registry, Postgres to Spark; the real transforms as judges
	@$(LIVE_TESTS) $(BIN)/python $(SIDE_BY_SIDE) tests/capture/connect

live-pipeline: classes live-jars ## the pipeline at scale 1: twenty kills over files and Kafka, Delta, Iceberg, a standalone cluster
	@$(LIVE_TESTS) $(BIN)/python $(STEALING) tests/pipeline

# where it cannot be made, the reason stands in .ready instead, dated so that the next time tries again
.venvs/spark-%/.ready: pyproject.toml | $(READY)
	@rm -rf $(@D) && mkdir -p $(@D) && echo "setting up $(@D)"
	@( command -v java >/dev/null || { echo "needs Java; get it with: apt install openjdk-17-jre-headless"; exit 1; }; \
	   $(UV) venv --quiet --no-project --allow-existing --python $(BIN)/python $(@D) && VIRTUAL_ENV="$(CURDIR)/$(@D)" \
	   $(UV) pip install --quiet $(SPARK_$*) $(SPARK_TESTS) --editable . ) >$(@D)/.log 2>&1 \
	   && mv $(@D)/.log $@ || { head -n 2 $(@D)/.log | tr '\n' ' ' >$@.why; find $(@D) -mindepth 1 -not -name '.ready*' -delete; \
	        mv $@.why $@; touch -d @0 $@; }

live-airflow: classes $(AIRFLOWS:%=.venvs/airflow-%/.ready) ## a DAG on Airflow 3 and 2.11, each in an environment of its own, against servers in every state
	@for version in $(AIRFLOWS); do \
		if ! test -x .venvs/airflow-$$version/bin/python; then \
			echo "Airflow $$version skipped: $$(cat .venvs/airflow-$$version/.ready)"; \
			test "$${HEADWATER_REQUIRE_LIVE:-}" != 1; \
		fi; \
	done
	@$(LIVE_TESTS) $(BIN)/python $(SIDE_BY_SIDE) tests/live_airflow

.venvs/airflow-%/.ready: pyproject.toml | $(READY)
	@rm -rf $(@D) && mkdir -p $(@D) && echo "setting up $(@D)"
	@( $(UV) venv --quiet --no-project --allow-existing --python $(BIN)/python $(@D) && VIRTUAL_ENV="$(CURDIR)/$(@D)" \
	   $(UV) pip install --quiet $(AIRFLOW_$*) $(AIRFLOW_ALL) --editable '.[airflow]' ) >$(@D)/.log 2>&1 \
	   && mv $(@D)/.log $@ || { head -n 2 $(@D)/.log | tr '\n' ' ' >$@.why; find $(@D) -mindepth 1 -not -name '.ready*' -delete; \
	        mv $@.why $@; touch -d @0 $@; }

live-dlt: classes live-jars $(DLTS:%=.venvs/dlt-%/.ready) ## real pipelines at scale 1 on the dlt of .venv (with Spark behind them), and on 1.20 and 1.25 with fewer repeats
	@$(LIVE_TESTS) $(BIN)/python $(SIDE_BY_SIDE) tests/capture/dlt
	@for version in $(DLTS); do \
		echo "== dlt $$version"; \
		if ! test -x .venvs/dlt-$$version/bin/python; then \
			echo "skipped: $$(cat .venvs/dlt-$$version/.ready)"; \
			test "$${HEADWATER_REQUIRE_LIVE:-}" != 1; continue; \
		fi; \
		HEADWATER_SCALE=$(OTHERS) .venvs/dlt-$$version/bin/python $(SIDE_BY_SIDE) tests/capture/dlt; \
	done

.venvs/dlt-%/.ready: pyproject.toml | $(READY)
	@rm -rf $(@D) && mkdir -p $(@D) && echo "setting up $(@D)"
	@( $(UV) venv --quiet --no-project --allow-existing --python $(BIN)/python $(@D) && VIRTUAL_ENV="$(CURDIR)/$(@D)" \
	   $(UV) pip install --quiet 'dlt[duckdb,filesystem,parquet,postgres,sql_database]==$*.*' $(DLT_TESTS) --editable '.[server,dlt]' ) >$(@D)/.log 2>&1 \
	   && mv $(@D)/.log $@ || { head -n 2 $(@D)/.log | tr '\n' ' ' >$@.why; find $(@D) -mindepth 1 -not -name '.ready*' -delete; \
	        mv $@.why $@; touch -d @0 $@; }

live-demo: classes ## the demo with real dlt and Spark at scale 1: each field of its shop is stirred, and held against its lineage
	@$(LIVE_TESTS) $(BIN)/python -m pytest tests/test_demo.py

live-datahub: $(READY) .venvs/datahub/.ready ## DataHub delivery at scale 1: every proposal by DataHub's own SDK, S3, a Kafka broker with a registry
	@$(BIN)/python scripts/live_jars.py broker schema-registry
	@$(LIVE_TESTS) $(BIN)/python $(SIDE_BY_SIDE) tests/deliver/datahub

# DataHub's SDK, which validates what is made here and reads it with its own file source
.venvs/datahub/.ready: pyproject.toml | $(READY)
	@rm -rf $(@D) && mkdir -p $(@D) && echo "setting up $(@D)"
	@( $(UV) venv --quiet --no-project --allow-existing --python $(BIN)/python $(@D) && VIRTUAL_ENV="$(CURDIR)/$(@D)" \
	   $(UV) pip install --quiet $(DATAHUB) ) >$(@D)/.log 2>&1 \
	   && mv $(@D)/.log $@ || { head -n 2 $(@D)/.log | tr '\n' ' ' >$@.why; find $(@D) -mindepth 1 -not -name '.ready*' -delete; \
	        mv $@.why $@; touch -d @0 $@; }

live-story: classes .venvs/airflow-3/.ready .venvs/datahub/.ready ## the whole of docs/story.md: Postgres, Debezium, Kafka, Iceberg, Spark, Delta, dlt, DuckDB, Airflow and DataHub in one graph known beforehand
	@$(BIN)/python scripts/live_jars.py broker connect debezium-postgres iceberg-sink avro-converter schema-registry spark-4.1
	@$(LIVE_TESTS) $(BIN)/python -m pytest -s tests/live_story

# what some benches stand beside, or in, lives in environments of its own
BESIDE_airflow = $(AIRFLOWS:%=.venvs/airflow-%/.ready)
BESIDE_datahub = .venvs/datahub/.ready

bench: $(READY) $(foreach name,$(BENCHES),$(BESIDE_$(name))) ## figures against their floors and peers, told in bench/RESULTS.md; SIZE=full for full sizes, BENCHES=graph for one
	@failed=; for name in $(BENCHES); do \
		echo "== $$name"; \
		$(BIN)/python bench/$$name.py $(if $(filter full,$(SIZE)),--full) --json bench/figures/$$name.json || failed="$$failed $$name"; \
	done; \
	$(BIN)/python scripts/results.py || failed="$$failed results"; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

results: $(READY) ## write bench/RESULTS.md and docs/plots from bench/figures and bench/told
	@$(BIN)/python scripts/results.py

demo: $(READY) web-if-node ## dlt and Spark on a small shop, where its wrong number comes from, then a server to look at it; ONCE=1: assert and exit
	@$(BIN)/headwater demo $(if $(ONCE),--once)

docs: $(READY) ## write the references in docs/ from the code, and build the site into site/
	@$(BIN)/python scripts/docs.py site

lock: $(READY) ## write locks/ from pyproject.toml; UPGRADE=1 for the newest versions
	@$(BIN)/python scripts/locks.py write --uv "$(UV)" $(if $(UPGRADE),--upgrade)

dist: $(READY) $(WEB) ## build the sdist, and from it the wheel, into dist/, both with the web UI
	@rm -f dist/headwater-*.tar.gz dist/headwater-*.whl
	@$(UV) build --quiet --out-dir dist . && ls dist

sbom: $(READY) ## write dist/headwater.cdx.json (CycloneDX) and docs/licences.md from the locks (needs npm)
	@$(BIN)/python scripts/sbom.py write --uv "$(UV)"

clean: ## remove what the targets made
	@rm -rf .venv .venvs .tools .live dist build site web/node_modules web/shots src/headwater/serve/built .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
