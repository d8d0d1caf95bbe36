// std::visit over lambdas: a variant alternative without one fails to compile.
#pragma once

namespace tp {

template <typename... Callables>
struct Overloaded : Callables... {
  using Callables::operator()...;
};

}  // namespace tp
