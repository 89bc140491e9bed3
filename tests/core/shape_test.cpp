#include "headwise/core/shape.hpp"

#include "headwise/core/error.hpp"
#include "support/catch.hpp"

using namespace headwise;

TEST_CASE("a shape counts its elements and its rows", "[core]") {
  const Shape s{2, 3, 4};
  CHECK(s.rank() == 3);
  CHECK(s.size() == 24);
  CHECK(s.rows() == 6);
  CHECK(s[-1] == 4);
  CHECK(s.with_last(5) == Shape{2, 3, 5});
  CHECK(to_string(s) == "(2,3,4)");
  CHECK(Shape{}.size() == 1);
}

TEST_CASE("a shape refuses what is no size", "[core][errors]") {
  CHECK_THROWS_WITH((Shape{2, -3}), "shape: size -3 of axis 1 is negative");
  CHECK_THROWS_WITH((Shape{1, 1, 1, 1, 1, 1, 1}), "shape: rank 7 is more than 6");
  CHECK_THROWS_AS((Shape{Index{1} << 40, Index{1} << 40}), ShapeError);
  CHECK_THROWS_WITH((Shape{2, 3}[2]), "shape: (2,3) has no axis 2");
}
