// What `headwise gradcheck` prints for people.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "cli/gradcheck_page.hpp"

namespace headwise::cli {

/// What a row of the table is: all cases of a name, one case, or one tensor of the only case.
enum class Rows { names, cases, tensors };

/// The table on stdout, row by row as results come. On a terminal it keeps to its width.
class GradcheckTable {
 public:
  /// Of these checks, which are to outlive it.
  GradcheckTable(const std::vector<GradCase>& cases, Rows rows);

  /// Tells of the last of the checks made so far, where it completes a row.
  void tell(const std::vector<Checked>& so_far);

 private:
  /// The head of the table, whose first column holds texts of that length.
  void begin(std::size_t longest);
  void print(std::string_view first, const auto& cases, const auto& elements,
             std::string_view worst, std::string_view verdict, const std::string& where,
             const std::string& label = "") const;
  void print_name(std::span<const Checked> of_name) const;
  void print_tensors(const Checked& c);

  const std::vector<GradCase>& cases_;
  Rows rows_;
  std::size_t first_ = 0;  // width of the first column
  std::size_t width_;      // of the terminal; 0: there is none
};

/// Why checks did not pass, after the table.
void print_diagnoses(const std::vector<Checked>& checks);

}  // namespace headwise::cli
