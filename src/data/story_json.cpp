// What is known about a story, as JSON.
#include <nlohmann/json.hpp>

#include "headwise/core/parse.hpp"
#include "headwise/data/stories.hpp"

namespace headwise {
namespace {

using Json = nlohmann::ordered_json;

Json of(const Story& story, const Mention& m) {
  Json word = {{"at", {m.begin, m.end}}, {"word", story.word(m)}, {"number", name_of(m.number)}};
  if (m.gender != Gender::none) word["gender"] = name_of(m.gender);
  if (m.sense != Sense::none) word["sense"] = name_of(m.sense);
  return word;
}

}  // namespace

std::string annotation(const Story& story) {
  const auto word = [&](const Mention& m) { return of(story, m); };
  Json verbs = Json::array(), pronouns = Json::array(), banks = Json::array();
  for (const Agreement& a : story.verbs) {
    Json attractors = Json::array();
    for (const Mention& m : a.attractors) attractors.push_back(word(m));
    verbs.push_back(
        {{"verb", word(a.verb)}, {"subject", word(a.subject)}, {"attractors", attractors}});
  }
  for (const Reference& r : story.pronouns)
    pronouns.push_back({{"pronoun", word(r.pronoun)}, {"antecedent", word(r.antecedent)}});
  for (const Bank& b : story.banks) banks.push_back({{"bank", word(b.word)}, {"cue", word(b.cue)}});
  return Json{{"text", story.text},
              {"sentences", story.sentences},
              {"verbs", verbs},
              {"pronouns", pronouns},
              {"banks", banks}}
      .dump();
}

}  // namespace headwise
