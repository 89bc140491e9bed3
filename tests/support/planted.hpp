// Mistakes planted at a place of a function, and whether a gradient check's report finds them.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headwise/core/parallel.hpp"
#include "support/catch.hpp"
#include "support/fault_families.hpp"
#include "support/share.hpp"
#include "support/tensors.hpp"
#include "support/threads.hpp"

namespace headwise::test {

/// What becomes of an op's call.
using Change = std::function<Op(const Op&)>;

/// A place for a mistake: an op's call, and the function around it.
struct Site {
  std::string op, label;
  std::vector<Tensor<double>> inputs;      // of the whole
  std::function<Op(const Change&)> whole;  // with the op's call changed
  Call call;                               // the op's, as it is
  Index record;
};

inline Op with_mistake(const Site& site, const Mistake& mistake) {
  return site.whole([op = site.op, mistake](const Op& f) { return faulty(op, f, mistake); });
}

/// What a mistake sends for the check's own dy and for another; zeros where it sends nothing.
inline std::vector<Gradients> sent(const Mistake& mistake, const Call& call) {
  std::vector<Gradients> all;
  for (const Tensor<double>& dy :
       {projection(call.y.shape()), random_tensor<double>(call.y.shape(), 7)}) {
    Gradients d = mistake.backward(call, dy);
    for (std::size_t i = 0; i < d.size(); ++i)
      if (d[i].empty()) d[i] = Tensor<double>::zeros(call.x[i].shape());
    all.push_back(std::move(d));
  }
  return all;
}

inline bool same(const Tensor<double>& a, const Tensor<double>& b) {
  return relative_gap(a, b) < 1e-11;
}
inline bool same(const std::vector<Gradients>& a, const std::vector<Gradients>& b) {
  for (std::size_t k = 0; k < a.size(); ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i)
      if (!same(a[k][i], b[k][i])) return false;
  return true;
}

inline Index nonzero(const Tensor<double>& x) {
  return x.size() - std::count(x.values().begin(), x.values().end(), 0.0);
}

/// Whether a mistake shows in the gradients of the whole: not where dy happens to be such that it
/// makes no difference, as a constant one that is transposed.
inline bool shows(const Site& site, const Mistake& mistake) {
  const Call whole(with_mistake(site, no_mistake()), site.inputs);
  const Tensor<double> dy = projection(whole.y.shape());
  return !same({whole.of(with_mistake(site, mistake), dy)}, {whole.right(dy)});
}

struct Planted {
  const Site* site;
  Mistake mistake;
  std::set<Fault> kinds;  // that are right
};

/// Kinds that are right too, each for a reason.
struct AlsoRight {
  std::string_view op, label, mistake;
  Fault kind;
};
inline constexpr std::array kAlsoRight = {
    // The result is a number, so nothing shows how it came to w's gradient, which is wrong
    // everywhere; x's is wrong in one row. Either may be told of.
    AlsoRight{"linear_cross_entropy", "one label ignored", "the ignored position counted",
              Fault::row},
    // The largest element alone has a gradient, and any mistake multiplies it by something:
    // what is no whole number nor one over it may be anything.
    AlsoRight{"max", "matrix", "input 0: times sqrt(N)", Fault::other},
};

/// Adds what the numbers cannot tell apart from the kind that was planted.
inline void widen(std::set<Fault>& kinds, const Gradients& wrong, const Gradients& right) {
  bool nothing = true, single = true;  // arrives at the inputs whose gradient is wrong
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    if (same(wrong[i], right[i])) continue;
    nothing = nothing && nonzero(wrong[i]) == 0;
    single = single && nonzero(right[i]) == 1 && nonzero(wrong[i]) == 1 &&
             last_row(wrong[i]) == last_row(right[i]);
  }
  if (nothing) kinds = {Fault::other};  // nothing is there to see a kind in
  // Any mistake in a number is a factor; which of them it is shows in an exact prediction alone.
  const bool predicted = kinds == std::set{Fault::sign} || kinds == std::set{Fault::reduction};
  if (single && !nothing && !predicted) kinds.insert(Fault::factor);
}

/// The mistakes that change something, of all ops and of this one. Two that send the same for every
/// dy cannot be told apart: there the kind of either is right.
inline std::vector<Planted> mistakes_at(const Site& site, const Mistakes& own = {}) {
  const Threads one(1);  // thousands of tiny regions
  Mistakes all = general_mistakes(site.op, site.call);
  all.insert(all.end(), own.begin(), own.end());
  const std::vector<Gradients> right = sent(no_mistake(), site.call);
  std::vector<std::vector<Gradients>> wrong;
  for (const Mistake& m : all) wrong.push_back(sent(m, site.call));

  std::vector<Planted> planted;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::set<Fault> kinds = {all[i].kind};
    if (all[i].assigns < 0) {
      if (same(wrong[i], right) || !shows(site, all[i])) continue;
      for (std::size_t j = 0; j < all.size(); ++j)
        if (same(wrong[i], wrong[j])) kinds.insert(all[j].kind);
      for (const AlsoRight& also : kAlsoRight)
        if (site.op == also.op && site.label == also.label && all[i].name == also.mistake)
          kinds.insert(also.kind);
      widen(kinds, wrong[i][0], right[0]);
    }
    planted.push_back({&site, all[i], kinds});
  }
  return planted;
}

/// Nothing, or what is wrong with the report.
inline std::string missed(const GradReport& report, const std::string& op, Index record,
                          const std::set<Fault>& kinds) {
  const Diagnosis& d = report.diagnosis;
  if (report.verdict != Verdict::fail) return fmt::format("verdict {}", name_of(report.verdict));
  if (d.record.op != op || d.record.number != record)
    return fmt::format("record {} ({}) instead of {} ({})", d.record.number, d.record.op, record,
                       op);
  if (kinds.contains(d.fault)) return {};
  std::vector<std::string_view> wanted;
  for (const Fault kind : kinds) wanted.push_back(name_of(kind));
  return fmt::format("'{}' ({}) instead of '{}'", name_of(d.fault), d.reason,
                     fmt::join(wanted, "' or '"));
}

/// Checks each of them (in a sanitized build a share of them), and fails for each that is missed.
/// Says how many were caught.
inline void require_caught(const std::vector<Planted>& all, const std::string& where) {
  std::vector<Planted> planted;
  for (std::size_t i = 0; i < all.size(); i += kEvery) planted.push_back(all[i]);
  std::vector<std::string> misses(planted.size());
  parallel_for(static_cast<Index>(planted.size()), 1, [&](Index begin, Index end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const Planted& p = planted[i];
      const GradReport report = gradcheck(with_mistake(*p.site, p.mistake), p.site->inputs);
      misses[i] = missed(report, p.site->op, p.site->record, p.kinds);
    }
  });
  Index caught = 0, open = 0;
  for (std::size_t i = 0; i < planted.size(); ++i) {
    const Planted& p = planted[i];
    open += p.kinds.size() > 1;
    caught += misses[i].empty();
    if (!misses[i].empty())
      FAIL_CHECK(
          fmt::format("{}, {}; {}: {}", p.site->op, p.site->label, p.mistake.name, misses[i]));
  }
  CHECK(caught == static_cast<Index>(planted.size()));
  WARN(fmt::format("caught {} of {} mistakes planted in {}; of {} the kind is open", caught,
                   planted.size(), where, open));
}

}  // namespace headwise::test
