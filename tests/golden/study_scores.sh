#!/bin/sh
# What `headwise study` finds in three small runs, computed again in NumPy:  sh tests/golden/study_scores.sh HEADWISE
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

# check NAME TRAINING-OPTION ...: trains a little, studies, and compares.
check() {
  name=$1
  shift
  echo "--- $name: train $*"
  "$headwise" train "$@" --batch 4 --warmup 5 --eval-batches 2 --out "$folder/$name" >/dev/null 2>&1
  "$headwise" study "$folder/$name" --sequences 4 --json "$folder/found" --patterns "$folder/patterns" >/dev/null 2>&1
  "$python" -B "$here/study_scores.py" "$folder/$name" "$folder/found" "$folder/patterns"
}

check stories --dtype f64 --layers 3 --heads 2 --width 16 --context 24 --steps 40 --lr 1e-2 --gelu tanh --tie
check induction --dtype f32 --task induction --attention-only --layers 2 --heads 2 --width 16 --context 64 --steps 40 --lr 1e-2
# Answers of unequal length, so that sequences are padded.
printf '%s\t%s\n' ab\> ba abcdefg\> gfedcba cd\> dc a\> a ef\> fe fgh\> hgf ha\> ah bcde\> edcb dea\> aed g\> g hgfe\> efgh c\> c \
  abc\> cba cdef\> fedc gh\> hg ba\> ab > "$folder/reverse.tsv"
check padded --dtype f64 --task "$folder/reverse.tsv" --layers 2 --heads 2 --width 16 --context 24 --steps 40 --lr 1e-2 --no-bias
