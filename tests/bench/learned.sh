#!/bin/sh
# What small models learn from the built-in corpus (seeds 1, 2 and 3) and tasks: the figures of datasets/README.md.
#   sh tests/bench/learned.sh stories-char|stories-word|copy|induction|heads|relations [FOLDER]
# Needs build/headwise and build/tests/story_check (sh tests/run.sh). Runs go to FOLDER (learned) and stay there.
set -eu
cd "$(dirname "$0")/../.."
what=${1:-}
folder=${2:-learned}
mkdir -p "$folder"
headwise=build/headwise

# train NAME OPTION ...: trains unless the run is there, and prints its last lines.
train() {
  name=$1
  shift
  [ -e "$folder/$name" ] || $headwise train "$@" --out "$folder/$name" >"$folder/$name.log"
  sed -n 's/^best validation loss/    best validation loss/p' "$folder/$name.log"
}

# stories NAME TOKENS OPTION ...: how much of what a model writes follows the grammar: of plain draws, and of the likeliest 90 %.
stories() {
  name=$1
  tokens=$2
  shift 2
  for seed in 1 2 3; do
    echo "$name, seed $seed"
    train "$name-$seed" "$@" --seed $seed --warmup 100 --schedule linear --min-lr 0 --no-tie --init-std 0.08 --width 128 --heads 8
    for top_p in 1 0.9; do
      $headwise sample "$folder/$name-$seed" --threads 1 --tokens "$tokens" --top-p $top_p --seed $seed >"$folder/$name-$seed.$top_p.txt"
      printf '    --top-p %s: ' $top_p
      build/tests/story_check <"$folder/$name-$seed.$top_p.txt" | sed -n 's/^new that parse */new sentences that parse /p'
    done
  done
}

case $what in
  stories-char) stories char 12000 --tokenizer char --layers 3 --context 128 --batch 8 --steps 8000 --lr 3e-3 --eval-every 2000 ;;
  stories-word) stories word 4000 --tokenizer word --layers 2 --context 64 --batch 12 --steps 7000 --lr 4e-3 --eval-every 1750 ;;
  copy)
    train copy --task copy --layers 2 --heads 4 --width 64 --batch 64 --steps 2500 --lr 3e-3 --eval-every 500
    $headwise eval "$folder/copy" ;;
  induction)
    for layers in 1 2; do
      for seed in 1 2 3; do
        echo "induction, $layers layer(s), seed $seed"
        train "induction-$layers-$seed" --task induction --preset induction --layers $layers --batch 32 --steps 2500 --lr 3e-3 --eval-every 500 --seed $seed
        $headwise eval "$folder/induction-$layers-$seed"
      done
    done ;;
  heads)
    for seed in 1 2 3 4 5; do
      for layers in 1 2; do
        train "heads-$layers-$seed" --task induction --preset induction --layers $layers --batch 32 --steps 1500 --lr 3e-3 --seed $seed --study-every 50
        $headwise study "$folder/heads-$layers-$seed" --json "$folder/heads-$layers-$seed.json" >"$folder/heads-$layers-$seed.txt"
      done
    done
    python3 tests/bench/heads.py "$folder" ;;
  relations)
    for seed in 1 2 3; do
      for kind in word char; do
        [ -e "$folder/$kind-$seed" ] || continue
        $headwise study "$folder/$kind-$seed" --json "$folder/$kind-$seed.json" >"$folder/$kind-$seed.txt"
      done
    done
    python3 tests/bench/relations.py "$folder" ;;
  *) echo "usage: sh tests/bench/learned.sh stories-char|stories-word|copy|induction [FOLDER]" >&2; exit 2 ;;
esac
