// The table of a profile.
#include <fmt/format.h>

#include <algorithm>

#include "bitale/function.h"
#include "graph/base/border.h"
#include "graph/base/text.h"
#include "runtime/figures.h"

namespace bitale {

namespace {
const ApiBorder printing("for the table of a profile");
}

std::string Profile::to_string() const {
    return printing([&] {
        std::vector<Row> sorted = rows;
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const Row& a, const Row& b) { return a.seconds > b.seconds; });
        double all = 0;
        for (const Row& row : rows) all += row.seconds;
        if (all == 0) return std::string("no times: give the function .profile = true, and call it\n");
        std::string text = fmt::format("{:>3} {:>8} {:>9} {:>9} {:>8} {:>8}  {}\n", "#", "share", "calls",
                                       "a call", "GB/s", "GFLOP/s", "what");
        for (const Row& row : sorted) {
            if (row.calls == 0) continue;
            const double a_call = row.seconds / static_cast<double>(row.calls);
            const auto rate = [&](std::int64_t of_call) {
                return of_call > 0 && a_call > 0 ? three_digits(1e-9 * static_cast<double>(of_call) / a_call)
                                                 : std::string("-");
            };
            text += fmt::format("{:>3} {:>6.1f} % {:>9} {:>9} {:>8} {:>8}  {}\n", row.number,
                                100 * row.seconds / all, row.calls, time_in_words(a_call), rate(row.bytes),
                                rate(row.flops), printable(row.kernel));
        }
        return text + fmt::format("{} in all\n", time_in_words(all));
    });
}

}  // namespace bitale
