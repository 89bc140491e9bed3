#!/bin/sh
# What `headwise study` finds in five small runs, computed again in NumPy:  sh tests/golden/study_scores.sh HEADWISE
# Needs a Python 3 with NumPy: $HEADWISE_PYTHON, or python3. Where there is none it skips, saying so (exit code 77); with
# HEADWISE_PYTHON set it fails instead, since then it is expected.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
if [ -n "${HEADWISE_PYTHON:-}" ]; then
  python=$HEADWISE_PYTHON
  "$python" -c "import numpy"
else
  for python in python3 /usr/bin/python3 none; do
    "$python" -c "import numpy" 2>/dev/null && break
  done
  [ "$python" != none ] || { echo "the figures of study were not computed again: no Python 3 with NumPy"; exit 77; }
fi

headwise=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# check NAME ROLES TRAINING-OPTION ...: trains a little, studies, compares, and looks whether these roles are named.
check() {
  name=$1
  roles=$2
  shift 2
  echo "--- $name: train $*"
  "$headwise" train --threads 1 "$@" --eval-batches 2 --out "$folder/$name" >/dev/null 2>&1
  "$headwise" study "$folder/$name" --sequences 4 --json "$folder/found" --patterns "$folder/patterns" >/dev/null 2>&1
  "$python" -B "$here/study_scores.py" "$folder/$name" "$folder/found" "$folder/patterns"
  for role in $roles; do
    grep -q "\"role\": \"$role\"" "$folder/found" || { echo "$name: no head is named $role"; exit 1; }
  done
}

small="--batch 4 --warmup 5 --steps 40 --lr 1e-2"
check stories "" $small --dtype f64 --layers 3 --heads 2 --width 16 --context 24 --gelu tanh --tie
check induction "" $small --dtype f32 --task induction --attention-only --layers 2 --heads 2 --width 16 --context 64
# Answers of unequal length, so that sequences are padded.
printf '%s\t%s\n' ab\> ba abcdefg\> gfedcba cd\> dc a\> a ef\> fe fgh\> hgf ha\> ah bcde\> edcb dea\> aed g\> g hgfe\> efgh c\> c \
  abc\> cba cdef\> fedc gh\> hg ba\> ab > "$folder/reverse.tsv"
check padded "" $small --dtype f64 --task "$folder/reverse.tsv" --layers 2 --heads 2 --width 16 --context 24 --no-bias
# Long enough that heads learn what they are named for. The copy of a task's prompt stands at a fixed offset.
check offset fixed_offset --dtype f32 --task copy --layers 1 --heads 2 --width 32 --batch 16 --steps 200 --lr 1e-2 --schedule constant
check learned "previous_token prefix_matching" --dtype f32 --task induction --preset induction --heads 2 --width 32 --batch 32 \
  --steps 600 --lr 5e-3 --schedule constant
