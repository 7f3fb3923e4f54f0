#!/usr/bin/env bash
# What depends on the models that a branch changes or deletes -> a comment for its pull request.
#
#   HEADWATER_URL=https://lineage.example.org HEADWATER_API_KEY=… bash ci/lineage.sh origin/main 10 comment.md
#
# Exits 6 where more than so many datasets hang on one of them, 4 where the server cannot be reached. A model is every dataset
# whose name ends with that of its file; LINEAGE_NAMESPACE leaves only those of one namespace, e.g. postgres://db:5432
set -euo pipefail

base=${1:?name what to compare with, e.g. origin/main}
most=${2:-10}
comment=${3:-comment.md}
part=$(mktemp) models=$(mktemp)
trap 'rm -f "$part" "$models"' EXIT
# by way of a file: a fault of git must be one of ours
git diff --no-renames --diff-filter=MD --name-only -z "$base...HEAD" -- 'models/*.sql' > "$models"
: > "$comment"
gate=0 left_out=0

# the ids of the datasets that a model makes, one a line
datasets() {
  local code=0
  headwater search "$1" --type dataset ${LINEAGE_NAMESPACE:+--namespace "$LINEAGE_NAMESPACE"} --limit 200 --json > "$part" || code=$?
  if ((code == 3)); then return; elif ((code)); then exit "$code"; fi
  python3 -c '
import json, re, sys
for each in json.load(open(sys.argv[1])):
    if re.split(r"[./]", each["name"])[-1].lower() == sys.argv[2].lower():
        print(each["id"])' "$part" "$1"
}

add() {
  if (($(wc -m < "$comment") + $(wc -m < "$part") > 60000)); then # GitHub takes 65,536 characters
    left_out=$((left_out + 1))
  else
    { cat "$part"; echo; } >> "$comment"
  fi
}

while IFS= read -r -d '' model; do
  name=$(basename "$model" .sql)
  known=$(datasets "$name")
  if [[ -z $known ]]; then
    echo "No dataset is known as \`$name\` yet." > "$part"
    add
  fi
  while IFS= read -r id; do
    code=0
    headwater impact "$id" --fail-over "$most" --markdown > "$part" || code=$?
    case $code in
      0) ;;
      6) gate=6 ;;
      *) exit "$code" ;;
    esac
    add
  done < <(printf '%s' "${known:+$known$'\n'}")
done < "$models"

if ((left_out)); then echo "$left_out more are left out: the comment is full." >> "$comment"; fi
if ! [[ -s $comment ]]; then echo "No model is changed." > "$comment"; fi
exit "$gate"
