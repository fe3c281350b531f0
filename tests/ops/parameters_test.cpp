// Parameters by path.
#include "bitale/train.h"
#include "tests/support/gradient_check.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

std::vector<std::string> names_of(const std::vector<Shared>& params) {
    std::vector<std::string> r;
    for (const Shared& p : params) r.push_back(p.name());
    return r;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("parameters are in the order in which they were added, named by their paths") {
    Parameters params;
    Parameters net = params.in("net"), conv = net.in("conv1");
    const Shared w = conv.add("w", zeros({3, 1, 5, 5})), b = conv.add("b", zeros({3}));
    params.add("scale", Array(1.0));
    net.add("out.w", zeros({10}, float64));
    CHECK(w.name() == "net.conv1.w");
    CHECK(names_of(params) == Names{"net.conv1.w", "net.conv1.b", "scale", "net.out.w"});
    CHECK(names_of(net) == Names{"net.conv1.w", "net.conv1.b", "net.out.w"});
    CHECK(names_of(params.in("net.out")) == Names{"net.out.w"});
    CHECK(names_of(params.in("nothing")).empty());
    CHECK(params["net.conv1.b"].state() == b.state());
    CHECK(conv["b"].state() == b.state());
    CHECK(params[0].state() == w.state());
    CHECK(params.size() == 4);
    int count = 0;
    for (const Shared& p : params) count += static_cast<int>(count_of(p.shape()));
    CHECK(count == 75 + 3 + 1 + 10);
    Parameters copy = params;  // the same list
    copy.add("late", Array(1));
    CHECK(params.size() == 5);
    const Shared mine = shared(zeros({2}), "net.mine");
    CHECK(net.add(mine).state() == mine.state());
    CHECK(names_of(net).back() == "net.mine");
    // Parts outlive the whole.
    Parameters part = [] { return Parameters().in("a"); }();
    CHECK(part.add("w", zeros({1})).name() == "a.w");
}

TEST_CASE("a name of parameters is one variable's") {
    Parameters params;
    const Where first = Where::current();
    params.add("net.w", zeros({3}));
    const std::string message = message_of<GraphError>([&] { params.in("net").add("w", zeros({3})); });
    CHECK_THAT(message, ContainsSubstring("two parameters have the name \"net.w\"") &&
                            ContainsSubstring("made at " + Where{first.file, first.line + 1}.text()) &&
                            ContainsSubstring(Where{first.file, first.line + 2}.text()));
    const Shared outside = shared(zeros({1}), "w"), none = shared(zeros({1}));
    CHECK_THAT(message_of<GraphError>([&] { params.in("net").add(outside); }),
               ContainsSubstring("does not lie below \"net.\""));
    params.add(outside);
    CHECK_THAT(message_of<GraphError>([&] { params.add(outside); }), ContainsSubstring("listed twice"));
    CHECK_THAT(message_of<GraphError>([&] { params.add(none); }), ContainsSubstring("empty name"));
    for (const char* name : {"", ".", "a.", ".a", "a..b"}) {
        INFO(name);
        CHECK_THROWS_AS(params.add(name, zeros({1})), GraphError);
        CHECK_THROWS_AS(params.in(name), GraphError);
    }
    CHECK_THAT(message_of<GraphError>([&] { params.add("a\nb", zeros({1})); }),
               ContainsSubstring("control characters"));
    CHECK_THROWS_AS(params.add(Shared()), GraphError);
    CHECK(params.size() == 2);
    try {
        params["net.v"];
        FAIL("there is no such parameter");
    } catch (const GraphError& e) {
        CHECK_THAT(e.what(), ContainsSubstring("no parameter \"net.v\"; did you mean \"net.w\"?"));
    }
    CHECK_THROWS_AS(params[2], IndexError);
    Parameters moved = std::move(params);
    CHECK(moved.size() == 2);
    CHECK_THROWS_AS(params.size(), GraphError);  // NOLINT
}

TEST_CASE("a summary lists names, dtypes, shapes, numbers and bytes") {
    Parameters params;
    CHECK(params.summary() ==
          "parameter  dtype  shape  numbers  bytes\n"
          "total                          0      0\n");
    params.in("conv1").add("w", zeros({10, 1, 3, 3}));
    params.add("b", zeros({10}, float64));
    CHECK(params.summary() ==
          "parameter  dtype    shape          numbers  bytes\n"
          "conv1.w    float32  [10, 1, 3, 3]       90    360\n"
          "b          float64  [10]                10     80\n"
          "total                                  100    440\n");
}
