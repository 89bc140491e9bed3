// Must not link: the table of layers it asks for lists one without checks, see
// headwise/nn/layers.def here.
#include "headwise/nn/layer_table.hpp"

int main() { return headwise::layer_cases<double>().empty() ? 1 : 0; }
