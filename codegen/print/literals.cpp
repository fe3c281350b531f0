// One walk over the statements finds the candidates and what has to stay; the order is that of the text.
#include "codegen/print/literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "graph/ir/op.h"

namespace bitale {

namespace {

constexpr std::size_t most_literals = 32;  // of a kernel: a GPU's parameters have room for a few hundred

constexpr std::array plain_ops = {Opcode::add,     Opcode::sub,     Opcode::mul,   Opcode::div,
                                  Opcode::maximum, Opcode::minimum, Opcode::where, Opcode::lt,
                                  Opcode::le,      Opcode::gt,      Opcode::ge};

// A compiler makes something of these: a product that is a sum, a quotient that is a product, nothing at all.
bool means_something(double x) {
    constexpr double small_integer = 64;
    int exponent = 0;
    return !std::isfinite(x) || std::abs(std::frexp(x, &exponent)) == 0.5 || x == 0 ||
           (std::abs(x) <= small_integer && x == std::trunc(x));
}

}  // namespace

std::optional<Literals::Key> Literals::key_of(const ScalarNode& s) {
    if (s.kind != ScalarNode::Kind::constant || means_something(s.number)) return std::nullopt;
    if (s.dtype == DType::float64) return Key{s.dtype, std::bit_cast<std::uint64_t>(s.number)};
    if (s.dtype != DType::float32) return std::nullopt;
    const auto single = static_cast<float>(s.number);
    if (means_something(single)) return std::nullopt;
    return Key{s.dtype, std::bit_cast<std::uint32_t>(single)};
}

Literals::Literals(const KernelIR& kernel) {
    for (const Phase& phase : kernel.phases)
        for (const Segment& segment : phase.segments) collect(segment.body);
    std::erase_if(keys_,
                  [&](const Key& k) { return std::find(fixed_.begin(), fixed_.end(), k) != fixed_.end(); });
    if (keys_.size() > most_literals) keys_.resize(most_literals);
    for (const Key& k : keys_) sizes_.emplace_back(static_cast<std::int64_t>(k.bits));
}

void Literals::collect(const Stmts& body) {
    for (const Stmt& s : body) {
        collect(s.value, false);
        collect(s.body);
    }
}

void Literals::collect(const Scalar& scalar, bool plain) {
    if (!scalar) return;
    if (const std::optional<Key> key = key_of(*scalar)) {
        std::vector<Key>& list = plain ? keys_ : fixed_;
        if (std::find(list.begin(), list.end(), *key) == list.end()) list.push_back(*key);
        return;
    }
    if (!seen_.insert(scalar.get()).second) return;
    const bool inside =
        scalar->kind == ScalarNode::Kind::apply &&
        std::find(plain_ops.begin(), plain_ops.end(), opcode_of(*scalar->op)) != plain_ops.end();
    for (const Scalar& a : scalar->arguments) collect(a, inside);
    collect(scalar->otherwise, false);
}

std::optional<std::size_t> Literals::find(const ScalarNode& constant) const {
    const std::optional<Key> key = key_of(constant);
    if (!key) return std::nullopt;
    const auto at = std::find(keys_.begin(), keys_.end(), *key);
    if (at == keys_.end()) return std::nullopt;
    return static_cast<std::size_t>(at - keys_.begin());
}

std::string Literals::value(std::size_t number, const std::string& bits) const {
    return keys_[number].dtype == DType::float32 ? "b_float((u32)" + bits + ")"
                                                 : "b_double((u64)" + bits + ")";
}

const char* Literals::type(std::size_t number) const {
    return keys_[number].dtype == DType::float32 ? "f32" : "f64";
}

std::string Literals::text(std::size_t number) const {
    const Key& key = keys_[number];
    return key.dtype == DType::float32
               ? fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(key.bits)))
               : fmt::format("{}", std::bit_cast<double>(key.bits));
}

}  // namespace bitale
