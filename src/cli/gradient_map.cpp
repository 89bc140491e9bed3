#include "cli/gradient_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cli/html.hpp"

namespace headwise::cli {

const std::string_view kMapStyle = R"css(
.b0{fill:#eef2f6}.b1{fill:#dce6ef}.b2{fill:#c4d7e8}.b3{fill:#a5c3de}
.r0{fill:#fde0a8}.r1{fill:#fdc077}.r2{fill:#fb9d55}.r3{fill:#f2763c}.r4{fill:#dd4b28}.r5{fill:#b8261a}
.r6{fill:#870e14}.r7{fill:#460812}
.skip{fill:url(#skip)} .bad{fill:url(#bad)} .worst{fill:none;stroke:var(--mark);stroke-width:2.5}
.cell{stroke:var(--back);stroke-width:.5} .hatch{stroke:var(--quiet)} .ground{fill:var(--panel)}
@media (prefers-color-scheme: dark) {
.b0{fill:#1e2832}.b1{fill:#253544}.b2{fill:#2d465d}.b3{fill:#385b7b}
.r0{fill:#7a2a1c}.r1{fill:#a63c26}.r2{fill:#cd5631}.r3{fill:#e8783f}.r4{fill:#f59c55}.r5{fill:#fcc173}
.r6{fill:#fde29c}.r7{fill:#fffbe0} }
)css";

const std::string_view kMapHatching = R"svg(<svg width="0" height="0" style="position:absolute"
 aria-hidden="true"><defs><pattern id="skip" width="5" height="5" patternUnits="userSpaceOnUse">
<rect width="5" height="5" class="ground"/><path d="M0 5L5 0" class="hatch"/></pattern>
<pattern id="bad" width="6" height="6" patternUnits="userSpaceOnUse">
<rect width="6" height="6" fill="#a21caf"/><path d="M1 1L5 5M5 1L1 5" stroke="#fff"/></pattern>
</defs></svg>
)svg";

namespace {

constexpr int kBelow = 4, kAbove = 8;  // colours on either side of the tolerance
constexpr Index kCells = 64;           // of a map, in each direction

/// The largest error of the colour `i` of those above the tolerance: the last but one ends at 1.
double limit_above(int i, double tolerance) {
  return std::pow(tolerance, 1 - (i + 1.0) / (kAbove - 1));
}

/// The class of the colour of an error.
std::string colour(double error, double tolerance) {
  if (!std::isfinite(error)) return "bad";
  int i = 0;
  if (error <= tolerance) {
    while (i < kBelow - 1 && error > tolerance * std::pow(10, i - kBelow + 1)) ++i;
    return fmt::format("b{}", i);
  }
  while (i < kAbove - 1 && error > limit_above(i, tolerance)) ++i;
  return fmt::format("r{}", i);
}

Index parts(Index size, Index step) { return (size + step - 1) / step; }

/// A tensor cut into blocks of rows, and these into cells of several elements.
struct Grid {
  Index blocks = 1, rows = 1, columns = 1;                              // elements
  Index row_step = 1, column_step = 1;                                  // elements of a cell
  [[nodiscard]] Index height() const { return parts(rows, row_step); }  // cells of a block
  [[nodiscard]] Index width() const { return parts(columns, column_step); }
  [[nodiscard]] std::size_t cell(Index element) const {
    const Index row = element / columns, block = row / rows;
    return static_cast<std::size_t>((block * height() + row % rows / row_step) * width() +
                                    element % columns / column_step);
  }
};

Grid grid_of(const Shape& shape) {
  Grid grid{.columns = shape.last()};
  grid.rows = shape.rows();
  if (shape.rank() > 2 && grid.rows / shape[-2] <= kCells) {
    grid.blocks = grid.rows / shape[-2];
    grid.rows = shape[-2];
  }
  while (grid.blocks * grid.height() > kCells && grid.height() > 1) ++grid.row_step;
  grid.column_step = parts(grid.columns, kCells);
  return grid;
}

/// Of the elements of a cell the one that is worst off.
struct Cell {
  Index element = -1;  // -1: none was compared
  double error = 0;    // NaN: not a finite number on either side
  Index of = 0;        // elements of the cell

  void add(Index i, double e) {
    const bool worse = element < 0 || (std::isfinite(error) && !(e <= error));
    if (worse) element = i, error = e;
  }
};

std::vector<Cell> cells_of(const TensorCheck& t, const Grid& grid) {
  const double *a = t.a.data(), *n = t.n.data();
  double largest = t.floor;
  for (Index i = 0; i < t.a.size(); ++i)
    for (const double x : {a[i], n[i]})
      if (std::isfinite(x)) largest = std::max(largest, std::fabs(x));
  std::vector<Cell> cells(static_cast<std::size_t>(grid.blocks * grid.height() * grid.width()));
  for (Index i = 0; i < t.a.size(); ++i) {
    Cell& cell = cells[grid.cell(i)];
    ++cell.of;
    const bool compared = !std::isnan(a[i]) || !std::isnan(n[i]) ||
                          (i == t.at && !std::isfinite(t.worst));  // NaN on both sides
    const double gap = std::fabs(a[i] - n[i]);
    if (compared) cell.add(i, gap == 0 ? 0 : std::isfinite(gap) ? gap / largest : NAN);
  }
  return cells;
}

/// "[1,0,3]": where an element stands.
std::string place(Index element, std::span<const Index> sizes) {
  std::vector<Index> at(sizes.size());
  for (std::size_t axis = sizes.size(); axis-- > 0; element /= sizes[axis])
    at[axis] = element % sizes[axis];
  return fmt::format("[{}]", fmt::join(at, ","));
}

std::string title_of(const Cell& cell, const TensorCheck& t) {
  if (cell.element < 0) return cell.of == 1 ? "not compared" : "none of these was compared";
  const Index i = cell.element;
  return fmt::format("{}element {}{}: analytic {:.9g}, numeric {:.9g}, error {:.2g}",
                     cell.of > 1 ? fmt::format("largest of {}: ", cell.of) : "", i,
                     t.shape.rank() > 1 ? " " + place(i, t.shape.sizes()) : "", t.a.data()[i],
                     t.n.data()[i], cell.error);
}

std::string caption_of(const TensorCheck& t, const Grid& grid) {
  std::string text = fmt::format("{}, {} of {} elements compared", t.shape, t.elements - t.skipped,
                                 t.shape.size());
  const Index rank = t.shape.rank();
  if (grid.blocks > 1)
    text += fmt::format(
        "; a block for each {}, rows are axis {}, columns axis {}",
        rank > 3 ? fmt::format("place along the axes 0 to {}", rank - 3) : "place along axis 0",
        rank - 2, rank - 1);
  else if (rank > 2)
    text +=
        fmt::format("; rows are the axes 0 to {} together, columns axis {}", rank - 2, rank - 1);
  if (grid.row_step * grid.column_step > 1)
    text += fmt::format("; a cell is the largest error of up to {} x {} elements", grid.row_step,
                        grid.column_step);
  return text;
}

}  // namespace

std::string map_legend(double tolerance) {
  constexpr int kWidth = 24, kLeft = 30, kTop = 18, kHeight = 14;
  std::string out = fmt::format(
      "<svg width=\"345\" height=\"78\" role=\"img\" aria-label=\"colours: blue up to the "
      "tolerance "
      "{0:.0e}, yellow to dark red above it\">\n<text x=\"{1}\" y=\"10\">tolerance "
      "{0:.0e}</text>\n<path d=\"M{2} 2V{3}\" stroke=\"var(--text)\" stroke-width=\"2\"/>\n",
      tolerance, kLeft + kBelow * kWidth + 5, kLeft + kBelow * kWidth, kTop + kHeight + 4);
  for (int i = 0; i < kBelow + kAbove; ++i) {
    const bool below = i < kBelow;
    const int x = kLeft + i * kWidth, j = below ? i : i - kBelow;
    out += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}{}\"/>\n", x,
                       kTop, kWidth, kHeight, below ? 'b' : 'r', j);
    const double limit =
        below ? tolerance * std::pow(10, j - kBelow + 1) : limit_above(j, tolerance);
    if (i % 2 == 0 && i < kBelow + kAbove - 1)
      out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{:.0e}</text>\n",
                         x + kWidth, kTop + kHeight + 14, limit);
  }
  return out +
         "<rect x=\"30\" y=\"58\" width=\"24\" height=\"14\" class=\"skip\"/>"
         "<text x=\"60\" y=\"69\">not compared</text>"
         "<rect x=\"150\" y=\"58\" width=\"24\" height=\"14\" class=\"bad\"/>"
         "<text x=\"180\" y=\"69\">not a finite number</text>\n</svg>\n";
}

std::string gradient_map(const TensorCheck& t, double tolerance) {
  const std::string name = escaped(t.name);
  if (t.a.size() == 0 || t.a.shape() != t.shape || t.n.shape() != t.shape)
    return fmt::format("<p class=\"quiet\">{}: {} was not compared element by element</p>\n", name,
                       t.shape);
  const Grid grid = grid_of(t.shape);
  const std::vector<Cell> cells = cells_of(t, grid);

  const Index widest = std::max(grid.width(), grid.blocks * grid.height());
  const Index side = std::clamp<Index>(480 / widest, 8, 24), gap = grid.blocks > 1 ? 14 : 0;
  const Index block_height = grid.height() * side + gap, top = gap == 0 ? 2 : 0;
  std::string out = fmt::format(
      "<p class=\"quiet\">{}: {}</p>\n<div class=\"wide\"><svg width=\"{}\" height=\"{}\" "
      "role=\"img\" aria-label=\"error of each element of {}\">\n",
      name, caption_of(t, grid), grid.width() * side + 4, grid.blocks * block_height + 4, name);
  const auto square = [&](std::size_t i, std::string_view kind) {
    const Index row = static_cast<Index>(i) / grid.width(), block = row / grid.height();
    return fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"{}\"",
                       2 + static_cast<Index>(i) % grid.width() * side,
                       top + block * block_height + gap + row % grid.height() * side, side, side,
                       kind);
  };
  if (grid.blocks > 1)
    for (Index b = 0; b < grid.blocks; ++b)
      out += fmt::format("<text x=\"2\" y=\"{}\">{}</text>\n", b * block_height + 10,
                         place(b, t.shape.sizes().first(t.shape.sizes().size() - 2)));
  for (std::size_t i = 0; i < cells.size(); ++i)
    out += fmt::format(
        "{}><title>{}</title></rect>\n",
        square(i, "cell " + (cells[i].element < 0 ? "skip" : colour(cells[i].error, tolerance))),
        title_of(cells[i], t));
  if (t.at >= 0 && t.at < t.a.size()) out += square(grid.cell(t.at), "worst") + "/>\n";
  return out + "</svg></div>\n";
}

}  // namespace headwise::cli
