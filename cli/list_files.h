// `tp submit --list-files`: what would be sent, and what stays out by which rule.
#pragma once

#include "cli/answer.h"
#include "cli/file_tree.h"

namespace tp::cli {

// `context` and `tree` outlive the answer.
Answer ListFiles(const Context& context, const FileTree& tree);

}  // namespace tp::cli
