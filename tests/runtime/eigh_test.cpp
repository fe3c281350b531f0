// eigh on devices: by LAPACK and without it, the same bits, memory, failures, and what other devices say.
#include "runtime/cpu/eigh.h"

#include <cmath>
#include <cstring>

#include "graph/base/options.h"
#include "graph/ir/shared.h"
#include "runtime/cpu/eigensystem.h"
#include "runtime/cpu/features.h"
#include "runtime/exec/program_io.h"
#include "runtime/exec/region_runner.h"
#include "runtime/info.h"
#include "runtime/null/null_device.h"
#include "runtime/state.h"
#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Options without_lapack() {
    Options o = options();
    o.disabled.insert("lapack");
    return o;
}

Array symmetric(DType dtype, std::int64_t n, std::uint64_t seed, std::int64_t rank = -1) {
    Random random(seed);
    const std::int64_t items = rank < 0 ? n : rank;
    const Array x = random_array(float64, {items, n}, random, -1, 1);
    Array a(float64, {n, n});
    auto* to = static_cast<double*>(a.mutable_data());
    for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
            double sum = 0;
            for (std::int64_t k = 0; k < items; ++k) sum += x.at(k * n + i) * x.at(k * n + j);
            to[i * n + j] = sum;
        }
    return a.as(dtype);
}

// How far A v = w v, and V^T V = 1, are from true, relative to the largest element of A.
struct Quality {
    double residual = 0, orthogonality = 0;
    bool ascending = true;
};
Quality quality_of(const Array& a, const double* values, const double* rows) {
    const std::int64_t n = a.shape().back();
    double largest = 1e-300;
    for (std::int64_t i = 0; i < n * n; ++i) largest = std::max(largest, std::abs(a.at(i)));
    Quality q;
    for (std::int64_t k = 0; k < n; ++k) {
        q.ascending = q.ascending && (k == 0 || values[k - 1] <= values[k]);
        for (std::int64_t i = 0; i < n; ++i) {
            double sum = 0, product = 0;
            for (std::int64_t j = 0; j < n; ++j) {
                sum += a.at(std::max(i, j) * n + std::min(i, j)) * rows[k * n + j];
                product += rows[i * n + j] * rows[k * n + j];
            }
            q.residual = std::max(q.residual, std::abs(sum - values[k] * rows[k * n + i]) / largest);
            q.orthogonality = std::max(q.orthogonality, std::abs(product - (i == k ? 1 : 0)));
        }
    }
    return q;
}

// The routine itself, of several matrices.
Array decomposed(const Array& a, const Lapack* lapack) {
    const std::int64_t n = a.shape().back(), matrices = a.rank() == 3 ? a.shape()[0] : 1;
    Array result(a.dtype(), {matrices, n + 1, n});
    std::vector<double> workspace(static_cast<std::size_t>(matrices * (2 * n * n + 20 * n + 64)));
    const RoutineShape shape{"eigh", a.dtype(), {matrices, n}, lapack != nullptr};
    CHECK(eigh(process_pool(options().threads), shape, a.data(), result.mutable_data(), workspace.data(),
               lapack ? *lapack : Lapack{}));
    return result;
}

void require_quality(const Array& a, const Array& result, double unit) {
    const std::int64_t n = a.shape().back();
    const std::vector<double> all = result.to_vector<double>();
    const Quality q = quality_of(a, all.data(), all.data() + n);
    CHECK(q.ascending);
    CHECK(q.residual <= 40 * unit * std::sqrt(static_cast<double>(n)));
    CHECK(q.orthogonality <= 40 * unit * std::sqrt(static_cast<double>(n)));
}

}  // namespace

TEST_CASE("eigenvalues and eigenvectors by our own code, of every size and rank") {
    for (const DType dtype : {float32, float64}) {
        const double unit = dtype == float32 ? 6e-8 : 1.2e-16;
        for (const std::int64_t n : {1, 2, 3, 4, 7, 16, 17, 33, 64, 100, 150})
            for (const std::int64_t rank : {n, n / 2, std::int64_t{1}, std::int64_t{0}}) {
                INFO(name_of(dtype) << " of order " << n << " and rank " << rank);
                const Array a = symmetric(dtype, n, static_cast<std::uint64_t>(n), rank);
                require_quality(a, decomposed(a, nullptr), unit);
            }
        // A chain, whose spectrum is known; graded elements; blocks; one number.
        const std::int64_t n = 90;
        Array chain(float64, {n, n}), graded(float64, {n, n}), blocks(float64, {n, n});
        auto *c = static_cast<double*>(chain.mutable_data()),
             *g = static_cast<double*>(graded.mutable_data()),
             *b = static_cast<double*>(blocks.mutable_data());
        for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
                c[i * n + j] = i == j ? 2 : std::abs(i - j) == 1 ? -1 : 0;
                g[i * n + j] = std::exp2(-0.5 * static_cast<double>(i + j)) * (i == j ? 1 : 0.25);
                b[i * n + j] = i / 3 == j / 3 ? 1 : 0;
            }
        for (const Array& x : {chain, graded, blocks})
            require_quality(x.as(dtype), decomposed(x.as(dtype), nullptr), unit);
        const Array of_chain = decomposed(chain.as(dtype), nullptr);
        for (std::int64_t k = 0; k < n; ++k) {
            const double expected =
                2 - 2 * std::cos(M_PI * static_cast<double>(k + 1) / static_cast<double>(n + 1));
            CHECK(of_chain.at(k) == Approx(expected).margin(40 * unit));
        }
        // Beyond the squares that the dtype has.
        for (const double scale : {dtype == float32 ? 1e30 : 1e300, dtype == float32 ? 1e-35 : 1e-300}) {
            Array far = symmetric(float64, 9, 3);
            for (std::int64_t i = 0; i < 81; ++i) static_cast<double*>(far.mutable_data())[i] *= scale;
            require_quality(far.as(dtype), decomposed(far.as(dtype), nullptr),
                            dtype == float32 ? 1e-6 : unit);
        }
    }
}

TEST_CASE("LAPACK and our own code agree") {
    // Any LAPACK will do here.
    const Lapack lapack = open_lapack({"libopenblas.so.0", "libmkl_rt.so.2", "liblapack.so.3"});
    if (!lapack.present) {
        WARN("no LAPACK: " << lapack.name);
        return;
    }
    INFO(lapack.name);
    for (const DType dtype : {float32, float64})
        for (const std::int64_t n : {1, 2, 5, 40, 120}) {
            const double unit = dtype == float32 ? 6e-8 : 1.2e-16;
            const Array a = symmetric(dtype, n, 11);
            const Array by_library = decomposed(a, &lapack), own = decomposed(a, nullptr);
            require_quality(a, by_library, unit);
            for (std::int64_t k = 0; k < n; ++k)
                CHECK(by_library.at(k) == Approx(own.at(k)).margin(40 * unit * static_cast<double>(n)));
            // Signs are those of the convention.
            for (std::int64_t k = n; k < by_library.size(); ++k)
                CHECK(std::abs(by_library.at(k) - own.at(k)) < (dtype == float32 ? 0.05 : 1e-6));
        }
    const Lapack none = open_lapack({"libno-such-lapack.so.3", "libm.so.6"});
    CHECK_FALSE(none.present);
    CHECK_THAT(none.name,
               ContainsSubstring("libno-such-lapack.so.3") && ContainsSubstring("libm.so.6 has no ssyevd_"));
}

TEST_CASE("a function has the same bits on any number of threads and for any width of vectors") {
    const Array a = symmetric(float32, 200, 4), many = [] {
        Array r(float32, {5, 17, 17});
        for (std::int64_t k = 0; k < 5; ++k) {
            const Array one = symmetric(float32, 17, static_cast<std::uint64_t>(k));
            std::memcpy(static_cast<float*>(r.mutable_data()) + k * 289, one.data(), 289 * sizeof(float));
        }
        return r;
    }();
    std::vector<Array> expected;
    for (const char* target : {"native", "x86-64-v3", "x86-64"})
        for (const int threads : {0, 1}) {
            Options o = without_lapack();
            o.cpu_target = target;
            o.threads = threads;
            const ScopedOptions scope(o);
            try {
                target_features();
            } catch (const Error&) {
                continue;  // not a target of this machine
            }
            const std::vector<Array> got{decomposed(a, nullptr), decomposed(many, nullptr)};
            if (expected.empty()) expected = got;
            for (std::size_t k = 0; k < got.size(); ++k) CHECK(same(got[k], expected[k]));
        }
    // Each of many matrices as it is alone.
    const Array first = decomposed(symmetric(float32, 17, 0), nullptr);
    CHECK(std::memcmp(first.data(), expected[1].data(), 18 * 17 * sizeof(float)) == 0);
}

TEST_CASE("eigh in a function: results, report, memory, other devices") {
    const Expr x = matrix("x");
    const auto [w, v] = eigh(x + transpose(x));
    const std::vector<Expr> results{w, v, dot(v * w, transpose(v))};
    const Array given = symmetric(float32, 60, 5);
    Function reference = function({x}, results, {.device = "reference"});
    const Results expected = reference(given);
    for (const bool lapack : {false, true}) {
        const ScopedOptions scope(lapack ? options() : without_lapack());
        Function f = function({x}, results, {.device = "cpu", .specialise = false});
        const Results got = f(given);
        const double largest = expected[0].at(59);
        for (std::int64_t k = 0; k < 60; ++k)
            CHECK(got[0].at(k) == Approx(expected[0].at(k)).margin(1e-5 * largest));
        CHECK(difference(got[2], expected[2], {.absolute = 1e-5 * largest}) == "");
        CHECK_THAT(f.report(Detail::complete),
                   ContainsSubstring("eigh of float32 [1, ") &&
                       ContainsSubstring("a routine of the runtime works in it") &&
                       ContainsSubstring("operand of eigh"));
        CHECK((lapack && lapack_library().present) ==
              (f.report(Detail::complete).find("LAPACK does") != std::string::npos));
        int calls = 0;
        for (const Kernel& k : f.kernels()) calls += k.name == "eigh";
        CHECK(calls == 1);
        // Empty and of one element, in the same function.
        CHECK(f(Array(float32, {0, 0}))[1].shape() == Dims{0, 0});
        CHECK(f(Array(std::vector<float>{3}, {1, 1}))[0].at(0) == 6);
        for (const double number : f(Array(std::vector<float>{std::nanf("")}, {1, 1}))[1].to_vector<double>())
            CHECK(std::isnan(number));
        CHECK_THAT(error_of([&] { f(Array(float32, {2, 3})); }), ContainsSubstring("eigh_test.cpp"));
        // The plan in text and back.
        const std::string json = program_to_json(*f.state().program);
        CHECK(program_to_json(program_from_json(json)) == json);
    }
    CHECK_THAT(info_text(), ContainsSubstring("LAPACK"));

    take_null_launches();
    function({x}, results, {.device = "null"})(given);
    int routines = 0;
    for (const Launch& l : take_null_launches())
        if (l.kind == Launch::Kind::routine) {
            ++routines;
            CHECK(l.routine.sizes == std::vector<std::int64_t>{1, 60});
        }
    CHECK(routines == 1);

    for (const char* device : {"emulator", "cuda:sm_90"})
        CHECK_THAT(error_of([&] { function({x}, results, {.name = "spectrum", .device = device}); }),
                   ContainsSubstring("eigh_test.cpp:") && ContainsSubstring("\"spectrum\"") &&
                       ContainsSubstring(": eigh (of float32 [x.0, x.1]) at eigh_test.cpp:") &&
                       ContainsSubstring(device) && ContainsSubstring(".device = \"cpu\"") &&
                       ContainsSubstring("shared variable"));
}

TEST_CASE("routines come before all that is written, and one that fails changes nothing") {
    const Expr x = matrix("x");
    const Shared steps = shared(Array(0.0F), "steps"), total = shared(zeros({4, 4}), "total"),
                 spectrum = shared(zeros({4}), "spectrum");
    const auto [w, v] = eigh(Expr(total) + x);
    Function f =
        function({x}, {sum(v)},
                 {.updates = {{steps, steps + 1.0F}, {total, total + x}, {spectrum, w}}, .device = "cpu"});
    const Program& program = *f.state().program;
    std::size_t routine = program.body.steps.size(), commit = routine;
    for (std::size_t i = program.body.steps.size(); i-- > 0;) {
        if (std::holds_alternative<RoutineStep>(program.body.steps[i].operation)) routine = i;
        if (program.body.steps[i].commits) commit = i;
    }
    CHECK(routine < commit);
    CHECK(commit < program.body.steps.size());

    // A launcher whose routine fails; nothing that commits may be launched then.
    struct Failing : Launcher {
        explicit Failing(const Program& of) : program(of) {}
        void kernel(int kernel, int, void* const*, const std::int64_t*, std::int64_t,
                    const Shares*) override {
            for (const Step& step : program.body.steps)
                if (const KernelLaunch* launch = kernel_of(step); launch && launch->kernel == kernel)
                    CHECK(!step.commits);
        }
        void gemm(const GemmShape&, const GemmData&, const SliceKernels&) override {}
        void conv(const ConvShape&, const ConvData&) override {}
        void copy(void*, const void*, std::int64_t) override {}
        bool routine(const RoutineShape&, void* const*) override { return false; }
        const Program& program;
    };
    RegionRunner runner(
        Build{f.state().plain, f.state().signature, f.state().program},
        [&] { return std::make_unique<Failing>(program); }, 0);
    const std::vector<Array> arguments{Array(float32, {4, 4})};
    const auto version = steps.state()->version;
    CHECK_THAT(error_of([&] { runner.run(arguments); }), ContainsSubstring("eigh") &&
                                                             ContainsSubstring("eigh_test.cpp") &&
                                                             ContainsSubstring("did not converge"));
    CHECK(steps.state()->version == version);

    f(symmetric(float32, 4, 2));
    CHECK(steps.get_value().at(0) == 1);
    CHECK(spectrum.get_value().at(3) > 0);
}

TEST_CASE("zca keeps bytes as bytes, and makes the identity of the covariance") {
    // 500 items of 48 bytes in a space of 20 dimensions, and one that does not change.
    constexpr std::int64_t items = 500, pixels = 48, rank = 20;
    Random random(8);
    const Array hidden = random_array(float64, {items, rank}, random, -1, 1),
                ways = random_array(float64, {rank, pixels}, random, -1, 1);
    Array data(float32, {items, pixels}), bytes(uint8, {items, pixels});
    for (std::int64_t i = 0; i < items; ++i)
        for (std::int64_t j = 0; j < pixels; ++j) {
            double sum = 120;
            for (std::int64_t k = 0; k < rank && j > 0; ++k)
                sum += 12 * hidden.at(i * rank + k) * ways.at(k * pixels + j);
            static_cast<float*>(data.mutable_data())[i * pixels + j] = static_cast<float>(sum);
            static_cast<std::uint8_t*>(bytes.mutable_data())[i * pixels + j] =
                static_cast<std::uint8_t>(std::lround(sum));
        }
    const auto spectrum_after = [&](const Array& given, double epsilon, DType dtype = float32) {
        const Expr x = input(given.dtype(), Dims{items, pixels}, "x"), numbers = cast(x, dtype);
        const Zca z = zca(numbers, epsilon);
        const Expr white = dot(numbers - z.mean, z.matrix);
        Function f =
            function({x}, dot(transpose(white), white) / static_cast<double>(items), {.device = "cpu"});
        const Array covariance = f(given)[0];
        return decomposed(covariance, nullptr).to_vector<double>();
    };
    // Floats: `rank` directions are kept, the others have rounding's variance, and are dropped.
    const std::vector<double> floats = spectrum_after(data, 0);
    for (std::int64_t k = 0; k < pixels - rank; ++k)
        CHECK(std::abs(floats[static_cast<std::size_t>(k)]) < 1e-3);
    for (std::int64_t k = pixels - rank; k < pixels; ++k)
        CHECK(floats[static_cast<std::size_t>(k)] == Approx(1).epsilon(1e-3));
    // Bytes: rounding to whole numbers is a variance of its own in all directions but that of the constant
    // pixel. Beside variances of thousands float32 knows it to two digits.
    for (const DType dtype : {float32, float64}) {
        const std::vector<double> rounded = spectrum_after(bytes, 1e-7, dtype);
        CHECK(std::abs(rounded[0]) < 1e-3);
        for (std::size_t k = 1; k < pixels; ++k)
            CHECK(rounded[k] == Approx(1).epsilon(dtype == float32 ? 1e-1 : 1e-5));
    }

    // Large data: the covariance is made of pieces, and nothing of the size of the data is stored.
    constexpr std::int64_t many = 40'000, wide = 64;
    const Shared images = shared(Array(uint8, {many, wide}), "images");
    const Zca z = zca(images, 0.1);
    Function f = function({}, {z.mean, z.matrix}, {.device = "cpu"});
    f();
    CHECK(f.peak_bytes() < many * wide * 3 / 2);
}
