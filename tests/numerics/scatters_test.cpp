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

// Functions of several tables at once, as compiling takes its time.
class Tables {
  public:
    struct Table {
        Expr base, part, key;
        Array base_value, part_value, key_value;
    };

    // columns 0: a vector. Keys are within the first 60,000 rows.
    Table add(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t terms, bool known) {
        Dims table{rows}, list{terms};
        if (columns > 0) table.push_back(columns), list.push_back(columns);
        Dims declared = list;
        if (!known) declared[0] = -1;
        const DType key_dtype = random_.pick(std::vector<DType>{int32, int64, uint16});
        const double last = static_cast<double>(std::min<std::int64_t>(rows, 60000)) - 1;
        Table t{input(dtype, table, "base"),
                input(dtype, declared, "part"),
                input(key_dtype, {declared[0]}, "key"),
                random_array(dtype, table, random_),
                random_array(dtype, list, random_),
                random_array(key_dtype, {terms}, random_, 0, last)};
        inputs_.insert(inputs_.end(), {Input(t.base), Input(t.part), Input(t.key)});
        values_.insert(values_.end(), {t.base_value, t.part_value, t.key_value});
        names_.push_back(fmt::format("{} {} terms of {} into {}", terms, name_of(dtype),
                                     known ? "a known number" : "an unknown number", text_of(table)));
        return t;
    }
    void expect(const Expr& output, const Array& right) {
        outputs_.push_back(output);
        right_.push_back(right);
    }
    void check() const {
        const Results r = function(inputs_, outputs_, {.device = tested_device()}).call(values_);
        for (std::size_t k = 0; k < right_.size(); ++k) {
            INFO(names_[k]);
            const bool narrow = right_[k].dtype() == float32;
            CHECK(difference(r[k], right_[k], {.ulps = 4, .of_largest = narrow ? 1e-6 : 1e-14}) == "");
        }
    }

  private:
    Random random_{1};
    std::vector<Input> inputs_;
    std::vector<Expr> outputs_;
    std::vector<Array> values_, right_;
    std::vector<std::string> names_;
};

Array set_by_loops(const Array& base, const Array& keys, const Array& rows) {
    std::vector<float> now = base.to_vector<float>();
    const std::vector<float> from = rows.to_vector<float>();
    const std::vector<std::int64_t> list = keys.to_vector<std::int64_t>();
    const auto width = static_cast<std::size_t>(base.size() / base.shape()[0]);
    for (std::size_t k = 0; k < list.size(); ++k)
        for (std::size_t j = 0; j < width; ++j)
            now[static_cast<std::size_t>(list[k]) * width + j] = from[k * width + j];
    return Array(std::span<const float>(now), base.shape());
}

}  // namespace

TEST_CASE("terms added at the places of keys, into tables of every size") {
    Tables tables;
    for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 0}, {50, 0}, {5000, 0}, {300000, 0}, {700, 3}, {600, 16}, {40, 65}, {3000, 7}})
        for (const DType dtype : {float32, float64, int8, int64})
            for (const std::int64_t terms : {0, 37, 2000}) {
                if (rows > 10000 && dtype != float32) continue;
                const Tables::Table t = tables.add(dtype, rows, columns, terms, terms != 37);
                tables.expect(inc_subtensor(t.base, t.key, t.part),
                              expected(t.base_value, t.key_value, t.part_value));
            }
    tables.check();
}

TEST_CASE("rows that are set at the places of keys, the last one of equal keys") {
    Tables tables;
    for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 0}, {2, 0}, {8, 0}, {50, 0}, {5000, 0}, {300000, 0}, {40, 3}, {700, 17}})
        for (const std::int64_t terms : {0, 1, 900})
            for (const bool known : {true, false}) {
                const Tables::Table t = tables.add(float32, rows, columns, terms, known);
                tables.expect(set_subtensor(t.base, t.key, t.part),
                              set_by_loops(t.base_value, t.key_value, t.part_value));
            }
    tables.check();
}
