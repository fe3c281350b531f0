// Terms that are added where keys say.
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

template <class T>
Array added_by_loops(const Array& base, const std::vector<std::int64_t>& keys, const Array& terms) {
    Array sums(base.dtype(), base.shape());
    const std::int64_t columns = base.shape()[0] == 0 ? 0 : base.size() / base.shape()[0];
    auto* to = static_cast<T*>(sums.mutable_data());
    std::fill(to, to + sums.size(), T(0));
    const auto* from = static_cast<const T*>(terms.data());
    for (std::size_t k = 0; k < keys.size(); ++k)
        for (std::int64_t j = 0; j < columns; ++j)
            to[keys[k] * columns + j] =
                static_cast<T>(to[keys[k] * columns + j] + from[static_cast<std::int64_t>(k) * columns + j]);
    const auto* old = static_cast<const T*>(base.data());
    for (std::int64_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(old[i] + to[i]);
    return sums;
}

Array expected(const Array& base, const Array& keys, const Array& terms) {
    const std::vector<std::int64_t> list = keys.to_vector<std::int64_t>();
    if (base.dtype() == float32) return added_by_loops<float>(base, list, terms);
    if (base.dtype() == float64) return added_by_loops<double>(base, list, terms);
    if (base.dtype() == int8) return added_by_loops<std::int8_t>(base, list, terms);
    return added_by_loops<std::int64_t>(base, list, terms);
}

}  // namespace

TEST_CASE("terms added at the places of keys, into tables of every size") {
    Random random(1);
    std::vector<Input> inputs;
    std::vector<Expr> outputs;
    std::vector<Array> values, right;
    std::vector<std::string> names;
    for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 0}, {50, 0}, {5000, 0}, {300000, 0}, {700, 3}, {600, 16}, {40, 65}, {3000, 7}})
        for (const DType dtype : {float32, float64, int8, int64})
            for (const bool known : {true, false}) {
                if (rows > 10000 && dtype != float32) continue;
                const std::int64_t terms =
                    known ? 900 : random.pick(std::vector<std::int64_t>{0, 1, 37, 2000});
                const DType key_dtype = random.pick(std::vector<DType>{int32, int64, uint16});
                Dims table{rows}, list{terms};
                if (columns > 0) table.push_back(columns), list.push_back(columns);
                Dims declared = list;
                if (!known) declared[0] = -1;
                const Expr base = input(dtype, table, "base"), part = input(dtype, declared, "part"),
                           key = input(key_dtype, {declared[0]}, "key");
                inputs.insert(inputs.end(), {Input(base), Input(part), Input(key)});
                values.push_back(random_array(dtype, table, random));
                values.push_back(random_array(dtype, list, random));
                const double last = static_cast<double>(std::min<std::int64_t>(rows, 60000)) - 1;
                values.push_back(random_array(key_dtype, {terms}, random, 0, last));
                right.push_back(
                    expected(values[values.size() - 3], values.back(), values[values.size() - 2]));
                outputs.push_back(inc_subtensor(base, key, part));
                names.push_back(fmt::format("{} {} terms of {} into {}", terms, name_of(dtype),
                                            known ? "a known number" : "an unknown number", text_of(table)));
            }
    const Results r = function(inputs, outputs, {.device = tested_device()}).call(values);
    for (std::size_t k = 0; k < right.size(); ++k) {
        INFO(names[k]);
        const bool narrow = right[k].dtype() == float32;
        CHECK(difference(r[k], right[k], {.ulps = 4, .of_largest = narrow ? 1e-6 : 1e-14}) == "");
    }
}

TEST_CASE("rows that are set at the places of keys, the last one of equal keys") {
    Random random(2);
    std::vector<Input> inputs;
    std::vector<Expr> outputs;
    std::vector<Array> values, right;
    std::vector<std::string> names;
    for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 0}, {2, 0}, {8, 0}, {50, 0}, {5000, 0}, {300000, 0}, {40, 3}, {700, 17}})
        for (const bool known : {true, false}) {
            const std::int64_t terms = known ? 900 : random.pick(std::vector<std::int64_t>{0, 1, 37, 2000});
            const DType key_dtype = random.pick(std::vector<DType>{int32, int64, uint16});
            Dims table{rows}, list{terms};
            if (columns > 0) table.push_back(columns), list.push_back(columns);
            Dims declared = list;
            if (!known) declared[0] = -1;
            const Expr base = input(float32, table, "base"), part = input(float32, declared, "part"),
                       key = input(key_dtype, {declared[0]}, "key");
            inputs.insert(inputs.end(), {Input(base), Input(part), Input(key)});
            values.push_back(random_array(float32, table, random));
            values.push_back(random_array(float32, list, random));
            const double last = static_cast<double>(std::min<std::int64_t>(rows, 60000)) - 1;
            values.push_back(random_array(key_dtype, {terms}, random, 0, last));
            std::vector<float> now = values[values.size() - 3].to_vector<float>();
            const std::vector<float> from = values[values.size() - 2].to_vector<float>();
            const std::vector<std::int64_t> keys = values.back().to_vector<std::int64_t>();
            const std::size_t width = columns > 0 ? static_cast<std::size_t>(columns) : 1;
            for (std::size_t k = 0; k < keys.size(); ++k)
                for (std::size_t j = 0; j < width; ++j)
                    now[static_cast<std::size_t>(keys[k]) * width + j] = from[k * width + j];
            right.push_back(Array(std::span<const float>(now), table));
            outputs.push_back(set_subtensor(base, key, part));
            names.push_back(fmt::format("{} rows of {} into {}", terms,
                                        known ? "a known number" : "an unknown number", text_of(table)));
        }
    const Results r = function(inputs, outputs, {.device = tested_device()}).call(values);
    for (std::size_t k = 0; k < right.size(); ++k) {
        INFO(names[k]);
        CHECK(difference(r[k], right[k]) == "");
    }
}
