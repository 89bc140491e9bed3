// The words of the stories, as datasets/README.md lists them.
#pragma once

#include <string_view>

#include "headwise/data/stories.hpp"

namespace headwise::story_words {

using Word = std::string_view;

struct Verb {
  Word singular, plural;
};
inline constexpr Verb kBe = {"is", "are"}, kHave = {"has", "have"};

/// A verb and what follows it, e.g. "waits" "at".
struct Phrase {
  Verb verb;
  Word rest;
};
struct Cue {
  Verb verb;
  Word rest, noun;
  Number number;
};

inline constexpr Word kGirls[] = {"Ann", "Eve", "Mia", "Zoe"};
inline constexpr Word kBoys[] = {"Ben", "Leo", "Sam", "Tom"};
inline constexpr Word kAnimals[] = {"bird", "cat", "cow", "dog", "duck", "frog", "hen", "pig"};
inline constexpr Word kThings[] = {"ball", "boat", "book", "cart", "cup", "drum", "kite", "toy"};
inline constexpr Word kPlaces[] = {"barn", "gate", "hill", "house", "pond", "rock", "tree", "wall"};
inline constexpr Word kPrepositions[] = {"behind", "by", "near"};
inline constexpr Word kNumbers[] = {"many", "three", "two"};
inline constexpr Word kLooks[] = {"big", "blue", "grey", "red", "small", "white"};
inline constexpr Word kFeelings[] = {"calm", "glad", "happy", "hungry", "sad", "tired"};
inline constexpr Word kStates[] = {"clean", "dirty", "heavy", "lost", "new", "old"};
inline constexpr Verb kLive[] = {{"eats", "eat"},   {"jumps", "jump"},   {"plays", "play"},
                                 {"sings", "sing"}, {"sleeps", "sleep"}, {"waits", "wait"}};
inline constexpr Verb kStir[] = {
    {"falls", "fall"}, {"moves", "move"}, {"shakes", "shake"}, {"turns", "turn"}};
inline constexpr Word kHow[] = {"again", "for hours", "now", "there"};
inline constexpr Verb kTake[] = {{"draws", "draw"}, {"finds", "find"}, {"likes", "like"},
                                 {"sees", "see"},   {"wants", "want"}, {"watches", "watch"}};
inline constexpr Verb kMeet[] = {{"follows", "follow"}, {"likes", "like"}, {"sees", "see"}};
inline constexpr Verb kGo[] = {
    {"comes", "come"}, {"goes", "go"}, {"runs", "run"}, {"walks", "walk"}};
inline constexpr Phrase kVisit[] = {{{"comes", "come"}, "to"},
                                    {{"goes", "go"}, "to"},
                                    {{"walks", "walk"}, "to"},
                                    {{"sits", "sit"}, "by"},
                                    {{"waits", "wait"}, "at"}};
inline constexpr Cue kRiver[] = {{{"swims", "swim"}, "in the", "river", Number::singular},
                                 {{"walks", "walk"}, "along the", "river", Number::singular},
                                 {{"jumps", "jump"}, "over the", "stream", Number::singular},
                                 {{"plays", "play"}, "in the", "water", Number::singular}};
inline constexpr Cue kMoney[] = {{{"counts", "count"}, "the", "money", Number::singular},
                                 {kHave, "a lot of", "money", Number::singular},
                                 {{"finds", "find"}, "some", "coins", Number::plural},
                                 {kHave, "a bag of", "gold", Number::singular}};
inline constexpr Word kRiverBank[] = {"green", "muddy", "steep", "wet"};
inline constexpr Word kMoneyBank[] = {"busy", "closed", "open", "safe"};

}  // namespace headwise::story_words
