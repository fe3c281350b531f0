// Shared variables of few bits an element: an ordinary variable of bytes, and an expression that unpacks it.
#include "bitale/packed.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "graph/base/numbers.h"
#include "graph/base/text.h"
#include "graph/ir/bit_planes.h"
#include "graph/ir/shared.h"
#include "ops/dsl/build.h"
#include "ops/shape/unpack.h"

namespace bitale {

struct PackedShared::State {
    std::string name;
    Where where;
    BitPlanes planes;
    Shared bytes, scale, offset;  // the last two may be empty
    Expr integers, value;

    bool is_scaled() const { return scale.state() || offset.state(); }
    DType dtype() const {
        return is_scaled() ? DType::float32 : planes.type.is_signed() ? DType::int8 : DType::uint8;
    }
    std::string subject() const {
        return "the packed variable " + in_quotes(name) + ", " + name_of(planes.type) + " " +
               bitale::text_of(planes.shape) + (where.line ? ", made at " + where.text() : "") + ": ";
    }
    // What integers of the variable stand for.
    Expr scaled(Expr x, Where at) const {
        if (!is_scaled()) return x;
        x = cast(x, DType::float32, at);
        if (scale.state()) x = Arg(x, at) * Arg(scale, at);
        return offset.state() ? Arg(x, at) + Arg(offset, at) : x;
    }
    bool has_one_scale() const {
        return (!scale.state() || scale.shape().empty()) && (!offset.state() || offset.shape().empty());
    }
    Array codes_of(const Array& from, Where at) const;
    Array values_of(const Array& codes) const;
};

namespace {

const ApiBorder making_packed("for a packed variable"),
    getting_packed("to get the value of a packed variable"),
    setting_packed("to set the value of a packed variable, which is as before");

std::string text_of(double x) { return number_text(x, std::numeric_limits<float>::max_digits10 - 1); }

// ---- Scales

// Float32 numbers that broadcast to a shape; without any, one for all.
class Numbers {
  public:
    Numbers(const Shared& from, float otherwise, const Dims& shape) : steps_(shape.size(), 0) {
        if (!from.state()) {
            numbers_ = {otherwise};
            return;
        }
        const Array values = from.get_value();
        numbers_ = values.to_vector<float>();
        std::int64_t step = 1;
        for (std::size_t i = values.shape().size(), to = shape.size(); i-- > 0;) {
            --to;
            if (values.shape()[i] != 1) steps_[to] = step;
            step *= values.shape()[i];
        }
    }
    // The number of the first element of a row of the last axis, and how far that of the next one is.
    const float* row(const Dims& at) const {
        std::int64_t k = 0;
        for (std::size_t i = 0; i < at.size(); ++i) k += at[i] * steps_[i];
        return numbers_.data() + k;
    }
    std::int64_t step() const { return steps_.empty() ? 0 : steps_.back(); }

  private:
    Dims steps_;
    std::vector<float> numbers_;
};

// Calls f(number of the first element, its position) for each row of the last axis, of which there is one.
template <class F>
void for_each_row(const Dims& shape, F&& f) {
    if (count_of(shape) == 0) return;
    const std::int64_t length = shape.empty() ? 1 : shape.back(), rows = count_of(shape) / length;
    Dims at(shape.size(), 0);
    for (std::int64_t row = 0; row < rows; ++row) {
        f(row * length, at);
        for (std::size_t i = shape.size(); i-- > 1;) {
            if (++at[i - 1] < shape[i - 1]) break;
            at[i - 1] = 0;
        }
    }
}

Array scale_of(const Array& given, const Dims& shape, bool is_scale, Where where) {
    const std::string what = is_scale ? "the scale" : "the offset";
    const Dims& own = given.shape();
    bool fits = own.size() <= shape.size();
    for (std::size_t i = 0; fits && i < own.size(); ++i)
        fits = own[i] == 1 || own[i] == shape[shape.size() - own.size() + i];
    if (!fits)
        throw ShapeError(where,
                         "a packed variable of shape " + bitale::text_of(shape) + ": " + what + " of shape " +
                             bitale::text_of(own) +
                             " does not broadcast to it; give a number, or one for each channel, as in "
                             "scale.reshaped({channels, 1, 1}) for images");
    const Array numbers = given.as(DType::float32);
    const std::vector<float> values = numbers.to_vector<float>();
    for (std::size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(values[i]) || (is_scale && values[i] == 0))
            throw IndexError(where, "a packed variable: " + what + " is " + text_of(values[i]) +
                                        " at element " + std::to_string(i) + "; it must be finite" +
                                        (is_scale ? " and not 0" : ""));
    return numbers;
}

// ---- Values and codes

template <class T>
double number_of(T x) {
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
        return static_cast<float>(x);
    else
        return static_cast<double>(x);
}

std::string range_text(StorageType type, double scale, double offset) {
    const double a = type.least() * scale + offset, b = type.most() * scale + offset;
    return text_of(std::min(a, b)) + " to " + text_of(std::max(a, b));
}

// How all of a value could be kept.
std::string cure_for(const Array& value, StorageType type) {
    const std::vector<double> all = value.to_vector<double>();
    if (!std::all_of(all.begin(), all.end(), [](double x) { return std::isfinite(x); }))
        return "no scale holds NaN or infinities; replace them before";
    const auto [low, high] = std::minmax_element(all.begin(), all.end());
    const double scale = *high > *low ? (*high - *low) / (type.most() - type.least()) : 1;
    return "{.scale = " + text_of(scale) + ", .offset = " + text_of(*low - type.least() * scale) +
           "} holds all of this value, a storage of more bits holds more exactly; or cut off what is beyond";
}

// The elements as numbers.
Expr integers_of(const BitPlanes& planes, const Expr& bytes, Where where) {
    const Expr bits = wrap(make_unpack(planes, bytes.node(), where));
    if (!planes.type.is_signed()) return bits;
    const Expr x = cast(bits, DType::int8, where);
    if (planes.type.bits() == 8) return x;
    const int sign = 1 << (planes.type.bits() - 1);
    return Arg(bitwise_xor(Arg(x, where), Arg(sign, where)), where) - Arg(sign, where);
}

}  // namespace

Array PackedShared::State::codes_of(const Array& from, Where at) const {
    const StorageType type = planes.type;
    if (from.shape() != planes.shape)
        throw ShapeError(at, subject() + "the value has the shape " + bitale::text_of(from.shape()) +
                                 "; a shape is fixed when the variable is created");
    if (!is_scaled() && is_float(from.dtype()))
        throw TypeError(
            at, subject() + "it holds integers, the value is " + std::string(name_of(from.dtype())) +
                    "; give a scale, as in {.storage = " + name_of(type) +
                    ", .scale = 0.1}, or convert it, as in value.as(" + std::string(name_of(dtype())) + ")");
    const Numbers scales(scale, 1, planes.shape), offsets(offset, 0, planes.shape);
    const std::int64_t length = planes.shape.empty() ? 1 : planes.shape.back();
    const double least = type.least(), most = type.most();
    const int mask = (1 << type.bits()) - 1;
    Array codes(DType::uint8, planes.shape);
    auto* to = static_cast<std::uint8_t*>(codes.mutable_data());
    dispatch(from.dtype(), [&](auto sample) {
        const auto* values = static_cast<const decltype(sample)*>(from.data());
        for_each_row(planes.shape, [&](std::int64_t first, const Dims& row) {
            const float *s = scales.row(row), *o = offsets.row(row);
            bool fits = true;
            for (std::int64_t j = 0; j < length; ++j) {
                const double code = std::nearbyint((number_of(values[first + j]) - o[j * offsets.step()]) /
                                                   s[j * scales.step()]);
                const bool in_range = code >= least && code <= most;  // NaN is not
                fits = fits && in_range;
                to[first + j] = static_cast<std::uint8_t>(static_cast<int>(in_range ? code : 0) & mask);
            }
            for (std::int64_t j = 0; !fits && j < length; ++j) {
                const double value = number_of(values[first + j]), by = s[j * scales.step()],
                             plus = o[j * offsets.step()], code = std::nearbyint((value - plus) / by);
                if (code >= least && code <= most) continue;
                Dims position = row;
                if (!position.empty()) position.back() = j;
                throw IndexError(
                    at, subject() + "the value " + text_of(value) + " at " + bitale::text_of(position) +
                            " is out of range: " + name_of(type) +
                            (is_scaled() ? " of scale " + text_of(by) + " and offset " + text_of(plus) : "") +
                            " holds " + range_text(type, by, plus) + "; " + cure_for(from, type));
            }
        });
    });
    return codes;
}

Array PackedShared::State::values_of(const Array& codes) const {
    const StorageType type = planes.type;
    Array values(dtype(), planes.shape);
    const auto* from = static_cast<const std::uint8_t*>(codes.data());
    const int sign = type.is_signed() ? 1 << (type.bits() - 1) : 0;
    const auto integer = [&](std::int64_t i) { return (from[i] ^ sign) - sign; };
    if (!is_scaled()) {
        auto* to = static_cast<std::uint8_t*>(values.mutable_data());
        for (std::int64_t i = 0; i < values.size(); ++i) to[i] = static_cast<std::uint8_t>(integer(i));
        return values;
    }
    const Numbers scales(scale, 1, planes.shape), offsets(offset, 0, planes.shape);
    const std::int64_t length = planes.shape.empty() ? 1 : planes.shape.back();
    auto* to = static_cast<float*>(values.mutable_data());
    for_each_row(planes.shape, [&](std::int64_t first, const Dims& row) {
        const float *s = scales.row(row), *o = offsets.row(row);
        for (std::int64_t j = 0; j < length; ++j)
            to[first + j] = static_cast<float>(integer(first + j)) * s[j * scales.step()];
        // A loop of its own: as in a graph, the product is rounded before the offset is added.
        for (std::int64_t j = 0; j < length; ++j) to[first + j] += o[j * offsets.step()];
    });
    return values;
}

PackedShared shared(const Array& value, const StorageOptions& options, Where where) {
    return making_packed([&] {
        auto state = std::make_shared<PackedShared::State>();
        state->name = options.name;
        state->where = where;
        state->planes = bit_planes(options.storage, value.shape());
        const auto part = [&](const std::optional<Array>& given, bool is_scale) {
            if (!given) return Shared();
            return shared(scale_of(*given, value.shape(), is_scale, where),
                          options.name + (is_scale ? ".scale" : ".offset"), where);
        };
        state->scale = part(options.scale, true);
        state->offset = part(options.offset, false);
        state->bytes = shared(packed(state->planes, state->codes_of(value, where)), options.name, where);
        state->integers = integers_of(state->planes, Expr(state->bytes, where), where);
        state->value = state->scaled(state->integers, where);
        PackedShared r;
        r.state_ = std::move(state);
        return r;
    });
}

const PackedShared::State& PackedShared::used() const {
    if (!state_)
        throw GraphError(
            "an empty packed variable is used, or one that was moved from; create it with "
            "shared(value, {.storage = uint4})");
    return *state_;
}

Array PackedShared::get_value() const {
    return getting_packed(
        [&] { return used().values_of(unpacked(used().planes, used().bytes.get_value())); });
}

void PackedShared::set_value(const Array& value, Where where) const {
    setting_packed([&] {
        const State& state = used();
        Shared bytes = state.bytes;
        bytes.set_value(bitale::packed(state.planes, state.codes_of(value, where)), where);
    });
}

const std::string& PackedShared::name() const { return used().name; }
DType PackedShared::dtype() const { return used().dtype(); }
Dims PackedShared::shape() const {
    return getting_packed([&] { return used().planes.shape; });
}
StorageType PackedShared::storage() const { return used().planes.type; }
std::int64_t PackedShared::bytes() const { return count_of(used().planes.packed); }
PackedShared::operator Expr() const { return used().value; }
PackedShared::operator Arg() const { return Arg(used().value, used().where); }
// One scale for all is behind the index: a mean of the rows is then one of integers.
Expr PackedShared::operator[](const Index& at) const {
    const State& state = used();
    return state.has_one_scale() ? state.scaled(state.integers[at], at.where) : state.value[at];
}
const Shared& PackedShared::packed() const { return used().bytes; }
const Shared& PackedShared::scale() const { return used().scale; }
const Shared& PackedShared::offset() const { return used().offset; }
std::string PackedShared::layout() const {
    return getting_packed([&] { return used().planes.text(); });
}

}  // namespace bitale
