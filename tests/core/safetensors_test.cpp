#include "headwise/core/safetensors.hpp"

#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <locale>

#include "headwise/core/hash.hpp"
#include "support/bytes.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/files.hpp"
#include "support/process.hpp"
#include "support/tensors.hpp"

using namespace headwise;
using test::mentions;

namespace {

std::string length_prefix(std::uint64_t length) {
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes;
}

/// A whole file from its header and its data.
std::string file_of(const std::string& header, const std::string& data) {
  return length_prefix(header.size()) + header + data;
}

/// One entry of a header; dtype, shape and offsets as they stand in JSON.
std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":{},"shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

/// A header of these entries.
std::string header_of(std::initializer_list<std::string> entries) {
  return fmt::format("{{{}}}", fmt::join(entries, ","));
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

/// A folder with one file, and what opening it says.
struct Crafted {
  explicit Crafted(const std::string& bytes) : path(folder / "crafted.safetensors") {
    test::write_bytes(path, bytes);
  }
  std::string error() const {
    return test::message_of<DataError>([&] { TensorFile file(path); });
  }
  TensorFile open() const { return TensorFile(path); }

  test::TemporaryFolder folder;
  std::string path;
};

/// What a file of one tensor 'a' with 8 bytes of data says.
std::string error_of_entry(const std::string& dtype, const std::string& shape,
                           const std::string& offsets) {
  const Crafted file(file_of(header_of({entry("a", dtype, shape, offsets)}), std::string(8, '\0')));
  return file.error();
}

}  // namespace

TEST_CASE("tensors and metadata come back as they were saved", "[core]") {
  const test::TemporaryFolder folder;
  const auto a = test::random_tensor<float>({3, 5}, 1);
  const auto b = test::random_tensor<double>({2, 1, 7}, 2);
  const Tensor<double> odd({4}, {-0.0, 5e-324, std::numeric_limits<double>::infinity(),
                                 std::numeric_limits<double>::quiet_NaN()});
  TensorFileWriter writer;
  writer.add("w.weight", a);
  writer.add("w.bias", b);
  writer.add("odd", odd);
  writer.add("scalar", Tensor<float>({}, {2.5F}));
  writer.add("nothing", Tensor<float>::zeros({0, 3}));
  writer.metadata("text", "quote \" backslash \\ line\n and \xc3\xbc");
  writer.metadata("empty", "");
  writer.save(folder / "x");

  const TensorFile file(folder / "x");
  CHECK(file.entries().size() == 5);
  CHECK(test::same_bits(file.tensor<float>("w.weight"), a));
  CHECK(test::same_bits(file.tensor<double>("w.bias"), b));
  CHECK(test::same_bits(file.tensor<double>("odd"), odd));
  CHECK(file.tensor<float>("scalar").shape() == Shape{});
  CHECK(file.tensor<float>("scalar").item() == 2.5F);
  CHECK(file.tensor<float>("nothing").shape() == Shape{0, 3});
  CHECK(file.metadata().size() == 2);
  CHECK(file.metadata().at("text") == "quote \" backslash \\ line\n and \xc3\xbc");
  CHECK(file.metadata().at("empty").empty());
  CHECK(file.has("odd"));
  CHECK_FALSE(file.has("text"));
}

TEST_CASE("a file without tensors opens", "[core]") {
  const test::TemporaryFolder folder;
  TensorFileWriter().save(folder / "x");
  CHECK(TensorFile(folder / "x").entries().empty());
  CHECK(Crafted(file_of("{}", "")).open().entries().empty());
}

TEST_CASE("a writer keeps what a tensor held when it was added", "[core]") {
  const test::TemporaryFolder folder;
  TensorFileWriter writer;
  {
    Tensor<float> x({2}, {1, 2});
    writer.add("x", x);
    x.data()[0] = 9;
  }
  writer.save(folder / "x");
  CHECK(test::same_bits(TensorFile(folder / "x").tensor<float>("x"), Tensor<float>({2}, {1, 2})));
}

TEST_CASE("the same content gives the same bytes", "[core]") {
  const test::TemporaryFolder folder;
  const auto x = test::random_tensor<float>({1000, 3}, 1);
  const Tensor<double> y({1}, {0.1});
  TensorFileWriter one, other;
  one.add("x", x);
  one.add("y", y);
  one.metadata("a", "1");
  one.metadata("b", "2");
  other.metadata("b", "2");
  other.add("y", y);
  other.metadata("a", "0");
  other.metadata("a", "1");
  other.add("x", x);
  one.save(folder / "one");
  other.save(folder / "other");
  CHECK(test::read_bytes(folder / "one") == test::read_bytes(folder / "other"));

  struct Grouped : std::numpunct<char> {  // 12,000 bytes, as a host program may write them
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouped));
  one.save(folder / "grouped");
  std::locale::global(before);
  CHECK(test::read_bytes(folder / "one") == test::read_bytes(folder / "grouped"));
}

TEST_CASE("a file is laid out as the format says", "[core]") {
  const test::TemporaryFolder folder;
  TensorFileWriter writer;
  writer.add("b", Tensor<float>({2}, {1, 2}));
  writer.add("a", Tensor<double>({1, 1}, {3}));
  writer.metadata("k", "v");
  writer.save(folder / "x");

  const auto hash = [](std::string_view bytes) {
    Xxh64 h;
    h.add(bytes);
    return fmt::format("{:016x}", h.value());
  };
  const std::string tensors = hash(bytes_of({3.0})) + hash(bytes_of({1.0F, 2.0F}));
  const std::string zeros(16, '0');
  const std::string header = R"({"__metadata__":{"headwise_checksum":"headwise xxh64:)" + zeros +
                             tensors +
                             R"(","k":"v"},"a":{"data_offsets":[0,8],"dtype":"F64","shape":[1,1]},)"
                             R"("b":{"data_offsets":[8,16],"dtype":"F32","shape":[2]}})";
  // Names in their order, and blanks up to a multiple of eight, so that the data is aligned.
  std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  padded.replace(padded.find(zeros), 16, hash(padded));
  CHECK(test::read_bytes(folder / "x") ==
        file_of(padded, bytes_of({3.0}) + bytes_of({1.0F, 2.0F})));
}

TEST_CASE("what another writer wrote opens", "[core]") {
  const TensorFile file(HEADWISE_GOLDEN "/multihead.safetensors");
  CHECK(file.metadata().at("heads") == "4");
  CHECK(file.entries().at("x").dtype == "F64");
  CHECK(file.tensor<double>("x").shape() == Shape{2, 7, 16});
  // A pattern is a pattern only when every byte is where it belongs: rows sum to one, and no query
  // looks ahead.
  const auto pattern = file.tensor<double>("pattern");
  REQUIRE(pattern.shape() == Shape{2, 4, 7, 7});
  for (Index row = 0; row < pattern.shape().rows(); ++row) {
    double sum = 0;
    for (Index s = 0; s < 7; ++s) {
      const double p = pattern.data()[row * 7 + s];
      if (s > row % 7) CHECK(p == 0);
      sum += p;
    }
    CHECK(sum == Approx(1).epsilon(1e-14));
  }
}

TEST_CASE("whole numbers come back as ids", "[core]") {
  const auto ids = [](std::initializer_list<std::int64_t> values) {
    return Crafted(
        file_of(header_of({entry("a", R"("I64")", "[3,1]", "[0,24]")}), bytes_of(values)));
  };
  const Ids good = ids({5, -100, 2147483647}).open().ids("a");
  CHECK(good.shape == Shape{3, 1});
  CHECK(good.values == std::vector<Id>{5, kIgnore, 2147483647});

  const Crafted bad = ids({5, 2147483648, 0});
  CHECK_THROWS_WITH(bad.open().ids("a"), bad.path + ": tensor 'a': 2147483648 is no id");
}

TEST_CASE("a tensor that is not there or of another type is named", "[core][errors]") {
  const test::TemporaryFolder folder;
  TensorFileWriter writer;
  writer.add("w", Tensor<float>({1}, {1}));
  const std::string path = folder / "x";
  writer.save(path);
  const TensorFile file(path);
  CHECK_THROWS_WITH(file.tensor<float>("v"), path + ": has no tensor 'v'");
  CHECK_THROWS_WITH(file.tensor<double>("w"), path + ": tensor 'w' is F32, not F64");
  CHECK_THROWS_WITH(file.ids("w"), path + ": tensor 'w' is F32, not I64");
  CHECK_THROWS_AS(file.ids("v"), DataError);
}

TEST_CASE("a writer refuses a name twice", "[core][errors]") {
  TensorFileWriter writer;
  writer.add("w", Tensor<float>({1}, {1}));
  CHECK_THROWS_WITH(writer.add("w", Tensor<double>({1}, {1})), "tensor file: 'w' is added twice");
}

TEST_CASE("a writer refuses what no reader would take", "[core][errors]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "x";
  const auto save = [&](auto change) {
    TensorFileWriter writer;
    change(writer);
    writer.save(path);
  };
  const Tensor<float> one({1}, {1});
  CHECK_THROWS_AS(save([](auto& w) { w.add("w", Tensor<float>()); }), Error);
  CHECK_THROWS_AS(save([&](auto& w) { w.add("__metadata__", one); }), Error);
  CHECK_THROWS_AS(save([&](auto& w) { w.add("\xff", one); }), Error);
  CHECK_THROWS_AS(save([](auto& w) { w.metadata("vocabulary", "\xc3("); }), Error);
}

// ---- Files that are not what they say. One number wrong in each. ----

TEST_CASE("a size that does not fit the file or the shape is refused", "[core][errors]") {
  const std::string f32 = R"("F32")";
  CHECK(error_of_entry(f32, "[2]", "[0,8]") == "nothing was thrown");
  CHECK(mentions(error_of_entry(f32, "[1000,1000]", "[0,4]"),
                 {"tensor 'a': shape (1000,1000) of F32 does not fill offsets [0, 4]"}));
  CHECK(mentions(error_of_entry(f32, "[3]", "[0,8]"), {"tensor 'a': shape (3) of F32"}));
  CHECK(mentions(error_of_entry(f32, "[1]", "[0,7]"), {"tensor 'a': shape (1) of F32"}));
  CHECK(mentions(error_of_entry(f32, "[2]", "[0,16]"),
                 {"tensor 'a': offsets [0, 16] do not lie in the 8 bytes of data"}));
  CHECK(mentions(error_of_entry(f32, "[2]", "[8,0]"),
                 {"tensor 'a': offsets [8, 0] do not lie in the 8 bytes of data"}));
  for (const char* offsets :
       {"[-4,4]", "[0,8,16]", "[0]", "[]", "[0,8.0]", R"(["0","8"])", "8", "null", "[0,1e1]"})
    CHECK(mentions(error_of_entry(f32, "[2]", offsets),
                   {"tensor 'a': data_offsets ", " is not [begin, end]"}));
}

TEST_CASE("a shape that is no shape is refused", "[core][errors]") {
  for (const char* shape : {R"("2")", "2", "[-2]", "[2.0]", R"(["2"])", "[[2]]", "null", "{}",
                            "[true]", "[18446744073709551615]", "[9223372036854775808]"})
    CHECK(mentions(error_of_entry(R"("F32")", shape, "[0,8]"),
                   {"tensor 'a': shape ", " is not a list of sizes"}));
  // Products that come round to 2 in 64 bits are still too many.
  CHECK(mentions(error_of_entry(R"("F32")", "[4611686018427387904,4,2]", "[0,8]"),
                 {"tensor 'a': ", "has too many elements"}));
  CHECK(mentions(error_of_entry(R"("F64")", "[2305843009213693953]", "[0,8]"), {"tensor 'a': "}));
  CHECK(mentions(error_of_entry(R"("F32")", "[1,1,1,1,1,1,2]", "[0,8]"),
                 {"tensor 'a': ", "rank 7 is more than 6"}));
}

TEST_CASE("a type the format does not have is refused", "[core][errors]") {
  CHECK(mentions(error_of_entry(R"("F33")", "[2]", "[0,8]"), {"tensor 'a': unknown dtype 'F33'"}));
  CHECK(mentions(error_of_entry("32", "[2]", "[0,8]"), {"tensor 'a': dtype is not a string"}));
  // A type that is known but not read has the same checks.
  CHECK(error_of_entry(R"("BF16")", "[4]", "[0,8]") == "nothing was thrown");
  CHECK(mentions(error_of_entry(R"("BF16")", "[2]", "[0,8]"), {"tensor 'a': shape (2) of BF16"}));
}

TEST_CASE("an entry without all of its members is refused", "[core][errors]") {
  const std::string data(8, '\0');
  for (const char* body :
       {"{}", "1", "[]", "null", R"({"dtype":"F32","shape":[2]})",
        R"({"dtype":"F32","data_offsets":[0,8]})", R"({"shape":[2],"data_offsets":[0,8]})"}) {
    const Crafted file(file_of(fmt::format(R"({{"a":{}}})", body), data));
    CHECK(file.error() == file.path + ": tensor 'a': needs dtype, shape and data_offsets");
  }
}

TEST_CASE("overlaps and holes are refused", "[core][errors]") {
  const auto error = [](const std::string& a, const std::string& b, std::size_t bytes) {
    const std::string f32 = R"("F32")";
    const std::string first = entry("a", f32, "[2]", a);
    const std::string header =
        b.empty() ? header_of({first}) : header_of({first, entry("b", f32, "[2]", b)});
    const Crafted file(file_of(header, std::string(bytes, '\0')));
    return file.error();
  };
  CHECK(error("[0,8]", "[8,16]", 16) == "nothing was thrown");
  CHECK(error("[8,16]", "[0,8]", 16) == "nothing was thrown");  // listed in another order
  CHECK(mentions(error("[0,8]", "[0,8]", 8), {"tensor 'b': begins at byte 0, overlapping"}));
  CHECK(mentions(error("[0,8]", "[4,12]", 12), {"tensor 'b': begins at byte 4, overlapping"}));
  CHECK(mentions(error("[4,12]", "[0,8]", 12), {"tensor 'a': begins at byte 4, overlapping"}));
  CHECK(mentions(error("[8,16]", "", 16), {"tensor 'a': begins at byte 8, leaving a hole"}));
  CHECK(mentions(error("[0,8]", "[12,20]", 20), {"tensor 'b': begins at byte 12, leaving a hole"}));
  CHECK(mentions(error("[0,8]", "", 16), {"16 bytes of data, but the tensors end at 8"}));
  CHECK(
      mentions(Crafted(file_of("{}", "x")).error(), {"1 bytes of data, but the tensors end at 0"}));
}

TEST_CASE("tensors without elements lie between others or nowhere", "[core][errors]") {
  const std::string f32 = R"("F32")";
  const auto file = [&](const std::string& offsets) {
    return Crafted(
        file_of(header_of({entry("a", f32, "[1]", "[0,4]"), entry("none", f32, "[0]", offsets),
                           entry("z", f32, "[1]", "[4,8]")}),
                std::string(8, '\0')));
  };
  for (const char* offsets : {"[0,0]", "[4,4]", "[8,8]"})
    CHECK(file(offsets).open().tensor<float>("none").size() == 0);
  CHECK(mentions(file("[2,2]").error(), {"tensor 'none': begins at byte 2, overlapping"}));
}

TEST_CASE("a header length that cannot be is refused without taking memory", "[core][errors]") {
  const std::int64_t before = test::peak_resident_bytes();
  const std::string good = header_of({entry("a", R"("F32")", "[2]", "[0,8]")});
  const std::string rest = good + std::string(8, '\0');
  const std::uint64_t whole = 8 + rest.size();
  for (const std::uint64_t length :
       {~std::uint64_t{0}, ~std::uint64_t{0} - 7, std::uint64_t{1} << 63, std::uint64_t{1} << 40,
        whole, whole - 7, std::uint64_t{1}, std::uint64_t{0}}) {
    const Crafted file(length_prefix(length) + rest);
    CHECK(file.error() ==
          fmt::format("{}: not a safetensors file: its first 8 bytes give a header of {} bytes, "
                      "the file has {}",
                      file.path, length, whole));
  }
  CHECK(mentions(Crafted("abc").error(), {"not a safetensors file: only 3 bytes"}));
  CHECK(mentions(Crafted("").error(), {"not a safetensors file: only 0 bytes"}));
  CHECK(mentions(Crafted(std::string(8, '\0')).error(), {"not a safetensors file"}));
  if (!test::kSanitized) CHECK(test::peak_resident_bytes() - before < 50 << 20);
}

TEST_CASE("a header cut short or too long by a byte is refused", "[core][errors]") {
  const std::string header = header_of({entry("a", R"("F32")", "[2]", "[0,8]")});
  const std::string rest = header + std::string(8, '\0');
  CHECK(mentions(Crafted(length_prefix(header.size() - 1) + rest).error(),
                 {"header: not JSON: line 1, column "}));
  const std::string file = file_of(header, std::string(8, '\0'));
  for (std::size_t n = 0; n < file.size(); ++n) {
    CAPTURE(n);
    CHECK(Crafted(file.substr(0, n)).error() != "nothing was thrown");
  }
}

TEST_CASE("a file of another kind is told so", "[core][errors]") {
  const std::string zip = std::string("PK\x03\x04\0\0\x08\x08\0\0", 10) + std::string(500, 'x');
  CHECK(mentions(Crafted(zip).error(), {"not a safetensors file: its first 8 bytes"}));
  for (const char* header : {"[1,2]", " {}", "\"text\"", "12", "null"})
    CHECK(mentions(Crafted(file_of(header, "")).error(),
                   {"not a safetensors file: the header does not start with '{'"}));
  for (const char* header : {"{ ", "{a}", "{}x", "{\"\xff\":1}", "{'a':1}", "{} {}"})
    CHECK(mentions(Crafted(file_of(header, "")).error(), {"header: not JSON: line 1, column "}));
}

TEST_CASE("nothing may stand in a header after its end", "[core][errors]") {
  const std::string zero(1, '\0');  // where a parser may take a text to end
  for (const std::string& rest : {zero, zero + "x", zero + "{}", std::string("\n x")})
    CHECK(mentions(Crafted(file_of("{}" + rest, "")).error(), {"header: not JSON: line "}));
  CHECK(Crafted(file_of("{} \n  ", "")).error() == "nothing was thrown");
}

TEST_CASE("deeply nested brackets are refused", "[core][errors]") {
  // Whoever walks them by recursion overflows the stack, so each file is opened by a child.
  constexpr std::size_t kDeep = 100000;
  const std::string open(kDeep, '['), close(kDeep, ']'), f32 = R"("F32")";
  for (const std::string& header : {
           fmt::format(R"({{"a":{})", open),
           fmt::format(R"({{"a":{}{}}})", open, close),
           fmt::format(R"({{"__metadata__":{{"k":{}{}}}}})", open, close),
           header_of({entry("a", open + close, "[2]", "[0,8]")}),
           header_of({entry("a", f32, open + close, "[0,8]")}),
           header_of({entry("a", f32, "[2]", open + close)}),
       }) {
    CAPTURE(header.substr(0, 40));
    const Crafted file(file_of(header, std::string(8, '\0')));
    CHECK(test::throws_in_child<DataError>([&] { TensorFile opened(file.path); }));
  }
}

TEST_CASE("a name that stands twice is refused", "[core][errors]") {
  const std::string f32 = R"("F32")", data(8, '\0');
  const std::string one = entry("a", f32, "[2]", "[0,8]");
  const Crafted file(file_of(header_of({one, entry("a", f32, "[1,2]", "[0,8]")}), data));
  CHECK(file.error() == file.path + ": tensor 'a' stands twice in the header");
  // Written in another way, still the same name.
  const std::string escaped = header_of({one, entry("\\u0061", f32, "[2]", "[0,8]")});
  CHECK(mentions(Crafted(file_of(escaped, data)).error(), {"'a' stands twice"}));
  CHECK(mentions(Crafted(file_of(R"({"__metadata__":{},"__metadata__":{"x":"y"}})", "")).error(),
                 {"'__metadata__' stands twice"}));
}

TEST_CASE("metadata that is no map of texts is refused", "[core][errors]") {
  const auto error = [](const char* metadata) {
    return Crafted(file_of(fmt::format(R"({{"__metadata__":{}}})", metadata), "")).error();
  };
  CHECK(error(R"({"k":"v"})") == "nothing was thrown");
  CHECK(mentions(error("[]"), {"__metadata__ is not an object"}));
  CHECK(mentions(error("null"), {"__metadata__ is not an object"}));
  CHECK(mentions(error(R"({"k":1})"), {"metadata 'k' is not a string"}));
  CHECK(mentions(error(R"({"k":{}})"), {"metadata 'k' is not a string"}));
}

TEST_CASE("a file that is not there is told so", "[core][errors]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "none.safetensors";
  CHECK_THROWS_WITH(TensorFile(path), path + ": no such file");
  CHECK_THROWS_WITH(TensorFile(folder.path()), folder.path() + ": is a folder, not a file");
}

TEST_CASE("a stream of numbers makes the file that a writer makes", "[core][safetensors]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "stream.safetensors";
  TensorFileStream stream(path, {{"a", "F32", {2, 3}}, {"b", "I64", {2}}, {"c", "F64", {1}}});
  const std::vector<float> a{1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> b{7, 8};
  const std::vector<double> c{9};
  stream.write(std::span<const float>(a).first(4));
  stream.write(std::span<const float>(a).subspan(4));
  stream.write(b);
  CHECK(!std::filesystem::exists(path));
  CHECK_THROWS_WITH(stream.finish(), "tensor file: 'c' has 0 numbers, not 1");
  stream.write(c);
  stream.finish();
  const TensorFile file(path);
  CHECK(file.tensor<float>("a").shape() == Shape{2, 3});
  CHECK(file.tensor<float>("a").values()[5] == 6);
  CHECK(file.ids("b").values == std::vector<Id>{7, 8});
  CHECK(file.tensor<double>("c").item() == 9);
}

TEST_CASE("a stream refuses what was not announced", "[core][safetensors]") {
  const test::TemporaryFolder folder;
  using Item = TensorFileStream::Item;
  CHECK_THROWS_WITH(TensorFileStream(folder / "x", {Item{"a", "F32", {1}}, Item{"a", "F32", {1}}}),
                    folder / "x" + ": 'a' is announced twice");
  TensorFileStream stream(folder / "x", {Item{"a", "F32", {2}}});
  const std::vector<float> three{1, 2, 3};
  const std::vector<double> wide{1};
  CHECK_THROWS_WITH(stream.write(wide), "tensor file: 'a' is F32, not F64");
  CHECK_THROWS_WITH(stream.write(three), "tensor file: 3 numbers do not fit 'a' (2)");
}

// ---- Damage, sizes and conversions. ----

TEST_CASE("every flipped bit of a written file is found", "[core][safetensors]") {
  const test::TemporaryFolder folder;
  TensorFileWriter writer;
  writer.add("weight", Tensor<float>({2, 2}, {1, 2, 3, 4}));
  writer.add("bias", Tensor<double>({1}, {-1}));
  writer.add("none", Tensor<float>::zeros({0}));
  writer.metadata("steps", "12");
  writer.save(folder / "x");
  TensorFile(folder / "x").verify();
  CHECK(TensorFile(folder / "x").metadata().size() == 1);

  const std::string good = test::read_bytes(folder / "x");
  const std::size_t data = good.size() - 24;
  const Crafted file(good);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    CAPTURE(bit, bit / 8);
    const auto write = [&](char byte) {  // in its place: much faster than a new file
      std::fstream out(file.path, std::ios::in | std::ios::out | std::ios::binary);
      out.seekp(static_cast<std::streamoff>(bit / 8)).put(byte);
    };
    write(static_cast<char>(good[bit / 8] ^ (1 << bit % 8)));
    const std::string error = test::message_of<DataError>([&] { TensorFile(file.path).verify(); });
    REQUIRE(error.starts_with(file.path + ": "));
    if (bit / 8 >= data) {  // the tensor is named, and reading it alone says so too
      const bool bias = bit / 8 < data + 8;
      CHECK(mentions(error, {bias ? "damaged: tensor 'bias'" : "damaged: tensor 'weight'"}));
      if (bias)
        CHECK_THROWS_AS(file.open().tensor<double>("bias"), DataError);
      else
        CHECK_THROWS_AS(file.open().converted<double>("weight"), DataError);
    }
    write(good[bit / 8]);
  }
}

TEST_CASE("a header takes time in proportion to its tensors", "[core][safetensors]") {
  const auto seconds = [](int tensors) {
    std::string header = "{";
    for (int i = 0; i < tensors; ++i)
      header +=
          fmt::format("{}\"t{}\":{{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[{},{}]}}",
                      i == 0 ? "" : ",", i, 4 * i, 4 * i + 4);
    const Crafted file(
        file_of(header + "}", std::string(static_cast<std::size_t>(4 * tensors), 'x')));
    const auto used = [] {  // of this process, so that others do not show
      ::rusage usage{};
      ::getrusage(RUSAGE_SELF, &usage);
      return static_cast<double>(usage.ru_utime.tv_sec) +
             1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
    };
    const double before = used();
    CHECK(file.open().entries().size() == static_cast<std::size_t>(tensors));
    return used() - before;
  };
  const double few = seconds(2000), many = seconds(32000);
  CHECK(many < 100 * std::max(few, 1e-3));  // 16 times in theory, 256 when quadratic
}

TEST_CASE("a header of junk takes little more memory than it has", "[core][safetensors]") {
  constexpr std::size_t kBytes = 30 << 20;
  std::string list = "{\"a\":{\"shape\":[1";
  while (list.size() < kBytes) list += ",1";
  std::string objects = "{\"__metadata__\":{\"a\":\"" + std::string(kBytes, 'x') + "\"";
  for (std::string* junk : {&list, &objects}) {
    const Crafted file(file_of(*junk, ""));
    *junk = std::string();
    const std::int64_t before = test::resident_bytes();
    CHECK(file.error() != "nothing was thrown");
    if (!test::kSanitized)  // twice, and the file as the test made it
      CHECK(test::peak_resident_bytes() - before < 3 * static_cast<std::int64_t>(kBytes));
  }
}

TEST_CASE("a header has limits", "[core][safetensors]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "sparse";
  test::write_bytes(path, length_prefix(100'000'001) + "{");
  std::filesystem::resize_file(path, 200'000'000);  // takes no space on the disk
  CHECK(test::message_of<DataError>([&] { TensorFile file(path); }) ==
        path + ": its first 8 bytes give a header of 100000001 bytes, at most 100000000 are read");

  const std::string name(4097, 'n');
  const std::string error =
      Crafted(file_of(header_of({entry(name, R"("F32")", "[1]", "[0,4]")}), "data")).error();
  CHECK(mentions(error, {"a name of 4097 bytes in the header, at most 4096: nnn"}));
  CHECK(error.size() < 400);
  TensorFileWriter writer;
  CHECK_THROWS_AS(writer.add(name, Tensor<float>({1}, {1})), DataError);
  std::string many = "{\"__metadata__\":{\"0\":\"\"";
  for (int i = 1; i <= 1 << 16; ++i) many += fmt::format(",\"{}\":\"\"", i);
  CHECK(mentions(Crafted(file_of(many + "}}", "")).error(), {"more than 65536 texts of metadata"}));
}

TEST_CASE("an entry has the format's members only, each once", "[core][safetensors]") {
  const auto error = [](const std::string& more) {
    return Crafted(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4])" + more + "}}",
                           "data"))
        .error();
  };
  CHECK(error("") == "nothing was thrown");
  CHECK(mentions(error(R"(,"shape":[1])"), {"tensor 'a': 'shape' stands twice"}));
  CHECK(mentions(error(R"(,"stride":[1])"), {"tensor 'a': unknown key 'stride'"}));
  CHECK(mentions(Crafted(file_of(R"({"__metadata__":{"k":"1","k":"2"}})", "")).error(),
                 {"metadata 'k' stands twice"}));
}

TEST_CASE("a large file costs what is read of it", "[core][safetensors]") {
  const test::TemporaryFolder folder;
  const std::string path = folder / "sparse";
  constexpr std::int64_t kBytes = std::int64_t{8} << 30;
  const std::string header =
      header_of({entry("large", R"("F32")", "[2147483647]", fmt::format("[4,{}]", kBytes)),
                 entry("small", R"("F32")", "[1]", "[0,4]")});
  test::write_bytes(path, file_of(header, bytes_of({2.5F})));
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(kBytes) + 8 + header.size());
  const std::int64_t before = test::resident_bytes();
  CHECK(TensorFile(path).tensor<float>("small").data()[0] == 2.5F);
  CHECK(test::resident_bytes() - before < 50 << 20);
}

TEST_CASE("a file that is cut while it is open says so", "[core][safetensors]") {
  const Crafted file(file_of(header_of({entry("a", R"("F32")", "[2]", "[0,8]")}), "12345678"));
  const TensorFile open = file.open();
  std::filesystem::resize_file(file.path, std::filesystem::file_size(file.path) - 1);
  CHECK_THROWS_AS(open.tensor<float>("a"), DataError);
}

TEST_CASE("16-bit numbers become floats exactly", "[core][safetensors]") {
  const auto converted = [](const char* dtype, std::initializer_list<std::uint16_t> bits) {
    const std::string data = bytes_of(bits);
    return Crafted(file_of(header_of({entry("a", fmt::format("\"{}\"", dtype),
                                            fmt::format("[{}]", bits.size()),
                                            fmt::format("[0,{}]", data.size()))}),
                           data))
        .open()
        .converted<float>("a");
  };
  const float infinity = std::numeric_limits<float>::infinity();
  // IEEE 754 binary16: 1, -2, the largest, the smallest normal, the largest and the smallest
  // subnormal, zeros, infinities; and a number near 1/3.
  CHECK(test::same_bits(
      converted("F16", {0x3C00, 0xC000, 0x7BFF, 0x0400, 0x03FF, 0x0001, 0x8001, 0x0000, 0x8000,
                        0x7C00, 0xFC00, 0x3555}),
      Tensor<float>({12}, {1, -2, 65504, 0x1p-14F, 0x1.FF8p-15F, 0x1p-24F, -0x1p-24F, 0.0F, -0.0F,
                           infinity, -infinity, 0x1.554p-2F})));
  CHECK(std::isnan(converted("F16", {0x7E01}).data()[0]));
  CHECK(test::same_bits(converted("BF16", {0x3F80, 0xC000, 0x7F7F, 0x0001, 0x8000, 0xFF80}),
                        Tensor<float>({6}, {1, -2, 0x1.FEp127F, 0x1p-133F, -0.0F, -infinity})));
  CHECK(std::isnan(converted("BF16", {0x7FC1}).data()[0]));
}

TEST_CASE("float and double become each other, to nearest", "[core][safetensors]") {
  const test::TemporaryFolder folder;
  TensorFileWriter writer;
  const auto wide = test::random_tensor<double>({100000}, 3);  // more than a block
  const auto narrow = test::random_tensor<float>({3}, 4);
  writer.add("wide", wide);
  writer.add("narrow", narrow);
  writer.add("ties", Tensor<double>({2}, {1 + 0x1p-24, 1 + 0x3p-24}));
  writer.add("huge", Tensor<double>({1}, {1e300}));
  writer.add("infinite", Tensor<double>({1}, {std::numeric_limits<double>::infinity()}));
  writer.save(folder / "x");
  const TensorFile file(folder / "x");
  CHECK(test::same_bits(file.converted<double>("wide"), wide));
  CHECK(test::same_bits(file.converted<float>("narrow"), narrow));
  const auto rounded = file.converted<float>("wide");
  for (Index i = 0; i < wide.size(); ++i)
    REQUIRE(rounded.data()[i] == static_cast<float>(wide.data()[i]));
  const auto exact = file.converted<double>("narrow");
  for (Index i = 0; i < narrow.size(); ++i)
    CHECK(exact.data()[i] == static_cast<double>(narrow.data()[i]));
  CHECK(test::same_bits(file.converted<float>("ties"), Tensor<float>({2}, {1, 1 + 0x2p-23F})));
  CHECK_THROWS_WITH(file.converted<float>("huge"),
                    folder / "x" + ": tensor 'huge': 1e+300 is too large for F32");
  CHECK(std::isinf(file.converted<float>("infinite").data()[0]));
  // The exact precision is still there to be asked for.
  CHECK_THROWS_WITH(file.tensor<float>("wide"), folder / "x" + ": tensor 'wide' is F64, not F32");
}

TEST_CASE("whole numbers are no weights", "[core][safetensors]") {
  for (const char* dtype : {"I64", "U64"}) {
    const Crafted file(
        file_of(header_of({entry("a", fmt::format("\"{}\"", dtype), "[1]", "[0,8]")}),
                std::string(8, '\1')));
    CHECK_THROWS_WITH(
        file.open().converted<float>("a"),
        file.path + fmt::format(": tensor 'a' is {}, not F16, BF16, F32 or F64", dtype));
  }
}
