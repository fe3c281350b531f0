// Literals that are parameters: kernels that differ in a learning rate only are one text, compiled once.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

class Literals {
  public:
    // Those of the kernel whose value means nothing to a compiler: no 0, no power of two, no small integer,
    // and only where they are operands of plain arithmetic, comparisons and choices.
    explicit Literals(const KernelIR& kernel);

    // The number of the parameter that holds this constant.
    std::optional<std::size_t> find(const ScalarNode& constant) const;
    // What the launch passes: the bits of each as an integer.
    const std::vector<Int>& sizes() const { return sizes_; }
    // The constant's value again, from the text of its integer.
    std::string value(std::size_t number, const std::string& bits) const;
    const char* type(std::size_t number) const;
    std::string text(std::size_t number) const;  // in decimals, for readers

  private:
    void collect(const Stmts& body);
    void collect(const Scalar& scalar, bool plain);

    struct Key {
        DType dtype;
        std::uint64_t bits;
        bool operator==(const Key&) const = default;
    };
    static std::optional<Key> key_of(const ScalarNode& constant);

    std::vector<Key> keys_, fixed_;
    std::vector<Int> sizes_;
    std::unordered_set<const ScalarNode*> seen_;  // a scalar is a graph with much in common
};

}  // namespace bitale
