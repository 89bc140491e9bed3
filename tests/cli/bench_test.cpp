// What headwise bench prints.
#include <map>
#include <set>

#include "cli/program.hpp"
#include "support/catch.hpp"
#include "support/files.hpp"
#include "support/process.hpp"

using namespace headwise::test;
using nlohmann::json;

namespace {

/// The one line of --json, which has these keys and no others.
json measured(const std::string& arguments, const std::set<std::string>& keys) {
  const Result r = headwise_program("bench --json --threads 1 " + arguments);
  INFO(r.err);
  REQUIRE(r.code == 0);
  CHECK(r.err.empty());
  const std::vector<json> all = lines(r.out);
  REQUIRE(all.size() == 1);
  std::set<std::string> found;
  for (const auto& [key, value] : all[0].items()) found.insert(key);
  CHECK(found == keys);
  CHECK(all[0]["engine"].get<std::string>().starts_with("headwise "));
  CHECK(all[0]["threads"] == 1);
  CHECK(mentions(all[0]["blas"].get<std::string>(), {"OpenBLAS"}));
  return all[0];
}

const std::set<std::string> kKeys{
    "engine", "mode",        "config", "threads",     "params", "ms", "min_ms", "tokens_per_second",
    "gflops", "peak_rss_mb", "blas",   "gemm_gflops", "share"};

}  // namespace

TEST_CASE("bench train measures a step of a preset", "[cli][bench]") {
  const json r = measured("train --config toy --seconds 0.1", kKeys);
  CHECK(r["mode"] == "train");
  CHECK(r["config"] == "toy");
  CHECK(r["params"] == 108352);
  const double ms = r["ms"];
  CHECK((r["min_ms"] > 0.0 && r["min_ms"] <= ms));
  CHECK(r["tokens_per_second"].get<double>() == Approx(16 * 64 / ms * 1e3));
  CHECK(r["gflops"].get<double>() == Approx(766'377'984 / ms / 1e6));  // see presets_test.cpp
  CHECK(r["share"].get<double>() ==
        Approx(691'666'944 / ms / 1e6 / r["gemm_gflops"].get<double>()));
  CHECK(r["peak_rss_mb"] > 1);
}

TEST_CASE("bench train takes another context and batch", "[cli][bench]") {
  const json r = measured("train --config toy --context 16 --batch 3 --seconds 0.01", kKeys);
  CHECK(r["params"] == 108352 - 48 * 64);
  CHECK(r["tokens_per_second"].get<double>() == Approx(3 * 16 / r["ms"].get<double>() * 1e3));
}

TEST_CASE("bench attention measures a layer forward and backward", "[cli][bench]") {
  if (kSanitized) return;
  const json r = measured("attention --config mha512 --seconds 0.05", kKeys);
  CHECK(r["mode"] == "attention");
  CHECK(r["config"] == "mha512");
  CHECK(r["params"] == 4 * (512 * 512 + 512));
  // Four projections of 4096 tokens and, for each of 512 keys, two products of 512; three times.
  const double flops = 3 * 4096 * (2. * 4 * (512 * 512 + 512) + 2. * 2 * 512 * 512);
  CHECK(r["gflops"].get<double>() == Approx(flops / r["ms"].get<double>() / 1e6));
}

TEST_CASE("bench sample measures texts token by token", "[cli][bench]") {
  std::set<std::string> keys = kKeys;
  keys.merge(std::set<std::string>{"weights_gb_per_second", "read_gb_per_second"});
  const int texts = GENERATE(1, 8);
  const json r =
      measured("sample --config toy --seconds 0.05 --batch " + std::to_string(texts), keys);
  CHECK(r["mode"] == "sample");
  CHECK(r["params"] == 108352);
  const double ms = r["ms"];
  CHECK(r["tokens_per_second"].get<double>() == Approx(64 * texts / ms * 1e3));
  // Every weight but the 64 positions is read once a token, for all texts.
  CHECK(r["weights_gb_per_second"].get<double>() ==
        Approx(64 * 4. * (108352 - 64 * 64) / ms / 1e6));
  CHECK(r["read_gb_per_second"] > 0.0);
  CHECK(r["gflops"].is_null());
  CHECK(r["share"].is_null());
}

TEST_CASE("bench gemm measures the machine", "[cli][bench]") {
  if (kSanitized) return;
  const json r = measured("gemm --seconds 0.03",
                          {"engine", "mode", "threads", "gflops", "small_gflops",
                           "row_gb_per_second", "read_gb_per_second", "kernel", "blas"});
  for (const char* key : {"gflops", "small_gflops", "row_gb_per_second", "read_gb_per_second"})
    CHECK(r[key] > 0.0);
  CHECK(r["blas"].get<std::string>().ends_with(" kernel " + r["kernel"].get<std::string>()));
}

TEST_CASE("bench train without --json says it in words", "[cli][bench]") {
  const Result train = headwise_program("bench train --seconds 0.05");
  CHECK(train.code == 0);
  CHECK(mentions(train.out, {"train toy: ", " ms median", "tokens/s", "108352 parameters"}));
}

TEST_CASE("a profile tells where the time of a step goes", "[cli][bench]") {
  const Result r = headwise_program("bench train --seconds 0.05 --profile");
  REQUIRE(r.code == 0);
  std::map<std::string, std::vector<std::string>> table;  // by name
  std::istringstream out(r.out.substr(r.out.find("\na step") + 1));
  for (std::string line; std::getline(out, line);) {
    std::istringstream cells(line.substr(26));
    std::string name = line.substr(0, 26);
    name.erase(name.find_last_not_of(' ') + 1);
    for (std::string cell; cells >> cell;) table[name].push_back(cell);
  }
  CHECK(table["a step"] == std::vector<std::string>{"ms", "%", "GFLOP/s", "GB/s", "calls"});
  double percent = 0;
  for (const auto& [name, cells] : table)
    if (name != "a step") percent += std::stod(cells.at(1));
  CHECK(percent == Approx(100).margin(1));
  // toy has two layers of four projections and an MLP's first, and the logits; in each of 2 groups.
  for (const char* name : {"linear, forward", "linear, backward"}) {
    CAPTURE(name);
    REQUIRE(table[name].size() == 5);
    CHECK(std::stod(table[name][2]) > 0);
    CHECK(std::stoi(table[name][4]) % 11 == 0);
  }
  CHECK(table["AdamW"].size() == 5);
  CHECK(table.contains("all else, and waiting"));
}
