// Parts of a kernel's text that are equal but for their arrays and places, in one function.
#include "codegen/print/repeated.h"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/catch.h"

using namespace bitale;

namespace {

constexpr const char* head =
    "extern \"C\" void KERNEL(void* const* buffers, const i64* sizes, i64 first, i64 last) {\n"
    "  const f32* B_RESTRICT p0 = (const f32*)buffers[0];\n"
    "  f32* B_RESTRICT p1 = (f32*)buffers[1];\n"
    "  const i64 s0 = sizes[0];\n";

// Of a task, parts that each add up elements of p0 from an own place on; long enough to be worth a function.
struct Text {
    std::string body =
        "// parts\nconst i64 n0 = last - 0 < 4 ? last - 0 : 4;\n"
        "for (i64 t0 = first > 0 ? first - 0 : 0; t0 < n0; ++t0) {\n  B_ALIGN f32 p2[64];\n";
    std::vector<std::size_t> headings{0};
    std::size_t lines = 4;
    int next = 10;

    void line(const std::string& text) { body += text + "\n", ++lines; }
    void part(int place, int length = 64, const std::string& more = "") {
        headings.push_back(lines);
        line("  // a part");
        const int j = next++;
        line(fmt::format("  for (i64 j{} = 0; j{} < {}; j{} += 1) {{", j, j, length, j));
        for (int k = 0; k < 80; ++k) {
            const int v = next++;
            line(fmt::format("    const f32 v{} = p0[(64 * t0 + {} + s0 * j{})];", v, place, j));
            line(fmt::format("    p2[j{}] = b_fma(v{}, {}.5f, p2[j{}]);", j, v, k, j));
        }
        line("  }");
        if (!more.empty()) line(more);
    }
    RepeatedParts once() {
        headings.push_back(lines);
        line("  // the result");
        line("  p1[t0] = p2[0];");
        line("}");
        int number = 0;
        return with_repeated_parts_once(head, body, headings, number);
    }
};

}  // namespace

TEST_CASE("equal parts become a function of what they work on") {
    Text text;
    for (const int place : {7, 7, 7}) text.part(place);
    const RepeatedParts once = text.once();
    CHECK_THAT(once.functions,
               ContainsSubstring("void KERNEL_same0(const f32* B_RESTRICT p0, const i64 t0, const i64 s0, "
                                 "f32* B_RESTRICT p2) {"));
    CHECK_THAT(once.functions, ContainsSubstring("p0[(64 * t0 + 7 + s0 * j10)]"));
    CHECK_THAT(once.body,
               ContainsSubstring("  // a part\n  KERNEL_same0(p0, t0, s0, p2);\n"
                                 "  // a part\n  KERNEL_same0(p0, t0, s0, p2);\n"
                                 "  // a part\n  KERNEL_same0(p0, t0, s0, p2);\n  // the result\n  p1[t0] = "
                                 "p2[0];\n}\n"));
}

TEST_CASE("places that differ are arguments, lengths of loops are not") {
    Text places;
    for (const int place : {512, 0, 1024}) places.part(place);
    const RepeatedParts once = places.once();
    CHECK_THAT(once.functions, ContainsSubstring("f32* B_RESTRICT p2, const i64 k0) {"));
    CHECK_THAT(once.functions, ContainsSubstring("p0[(64 * t0 + (512 + k0) + s0 * j"));
    for (const char* call : {"p2, 0);", "p2, -512);", "p2, 512);"})
        CHECK_THAT(once.body, ContainsSubstring(call));
    Text lengths;
    for (const int length : {64, 32, 16}) lengths.part(0, length);
    const RepeatedParts as_written = lengths.once();
    CHECK(as_written.functions.empty());
    CHECK(as_written.body == lengths.body);
}

TEST_CASE("what is declared in a part and used behind it stays where it is") {
    Text text;
    for (int k = 0; k < 3; ++k) text.part(3, 64, fmt::format("  const f32 w{} = p2[{}];", k, k));
    text.line("  p1[0] = w2 + w1;");
    const RepeatedParts once = text.once();
    CHECK(once.functions.empty());
    CHECK(once.body == text.body);
}

TEST_CASE("two equal parts, and short ones, stay as they are") {
    Text text;
    for (int k = 0; k < 2; ++k) text.part(3);
    const RepeatedParts once = text.once();
    CHECK(once.functions.empty());
    CHECK(once.body == text.body);
}

TEST_CASE("arrays with open ends are arguments, and names of unknown kinds stay where they are") {
    for (const bool known : {true, false}) {
        Text text;
        text.line(known ? "  B_ARRAY(f32, p3, 50);" : "  SOMETHING(f32, p3);");
        for (int k = 0; k < 3; ++k) text.part(3, 64, "  p3[1] = p2[2];");
        const RepeatedParts once = text.once();
        INFO(once.functions);
        if (known)
            CHECK_THAT(once.functions, ContainsSubstring("f32* B_RESTRICT p3) {"));
        else
            CHECK(once.functions.empty());
    }
}

TEST_CASE("exponents of numbers are no places") {
    Text text;
    for (const char* number : {"1e+17", "1e+19", "1e-20", "1e-21"})
        text.part(3, 64, std::string("  p3[1] = ") + number + " + p2[2];");
    const RepeatedParts once = text.once();
    CHECK(once.functions.empty());
}
