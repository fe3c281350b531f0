// Types are not read from the table: each op is asked what it makes of each dtype.
#include "elementwise.h"

#include <bitale/bitale.h>

#include <cctype>
#include <functional>
#include <map>
#include <sstream>

namespace reference {
namespace {

using bitale::DType;
using bitale::Expr;

struct Row {
    std::string text;  // of kernels
    std::vector<std::string> gradients;
    std::function<Expr(const Expr&)> of;  // the op, all operands the same expression
};

const std::map<std::string, Row>& rows() {
    static const std::map<std::string, Row> all = {
#define BITALE_UNARY(name, rule, text, reference, gradient, ...) \
    {#name, {#text, {#gradient}, [](const Expr& x) { return bitale::name(x); }}},
#define BITALE_BINARY(name, rule, text, reference, gradient_a, gradient_b, ...) \
    {#name, {#text, {#gradient_a, #gradient_b}, [](const Expr& x) { return bitale::name(x, x); }}},
#define BITALE_TERNARY(name, rule, text, reference, gradient_a, gradient_b, gradient_c, ...) \
    {#name,                                                                                  \
     {#text, {#gradient_a, #gradient_b, #gradient_c}, [](const Expr& x) { return bitale::name(x, x, x); }}},
#include <bitale/elementwise_table.h>
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY
    };
    return all;
}

// `a + b` of "a + b", of Text("a + b", "b_add(a, b)") too; nothing where a helper computes it.
std::string formula(const Row& row) {
    const std::size_t begin = row.text.find('"') + 1;
    const std::string c = row.text.substr(begin, row.text.find('"', begin) - begin);
    return c.find("b_") == std::string::npos ? c : "";
}

// "float32 for boolean and integers; the operands' own for float32, float64; TypeError for float16,
// bfloat16".
std::string types(const Row& row) {
    constexpr DType dtypes[] = {bitale::boolean, bitale::int8,    bitale::int16,    bitale::int32,
                                bitale::int64,   bitale::uint8,   bitale::uint16,   bitale::uint32,
                                bitale::uint64,  bitale::float16, bitale::bfloat16, bitale::float32,
                                bitale::float64};
    std::vector<std::pair<std::string, std::string>> by_result;  // in the order of the dtypes
    for (const DType t : dtypes) {
        std::string result;
        try {
            const DType r = row.of(bitale::vector("x", t)).dtype();
            result = r == t ? "the operands' own" : std::string(name_of(r));
        } catch (const bitale::TypeError&) {
            result = "TypeError";
        }
        auto known = by_result.begin();
        while (known != by_result.end() && known->first != result) ++known;
        if (known == by_result.end()) known = by_result.insert(known, {result, ""});
        known->second += (known->second.empty() ? "" : ", ") + std::string(name_of(t));
    }
    std::string text;
    const std::string integers = "int8, int16, int32, int64, uint8, uint16, uint32, uint64";
    for (auto& [result, operands] : by_result) {
        if (const std::size_t at = operands.find(integers); at != std::string::npos)
            operands.replace(at, integers.size(), "integers");
        text += (text.empty() ? "" : "; ") + result + " for " + operands;
    }
    return text;
}

std::string gradient(const Row& row) {
    std::string text;
    for (std::size_t k = 0; k < row.gradients.size(); ++k) {
        const std::string name(1, static_cast<char>('a' + k));
        const std::string& g = row.gradients[k];
        text += (text.empty() ? "" : "; ") + ("of " + name) + ": " +
                (g == "none"                       ? "none flows"
                 : g == "zeros_like(" + name + ")" ? "0"
                                                   : g);
    }
    return text;
}

std::string declaration(const std::string& name, const Row& row) {
    std::string arguments;
    for (std::size_t k = 0; k < row.gradients.size(); ++k)
        arguments += std::string(k ? ", " : "") + "const Arg& " + static_cast<char>('a' + k);
    return "Expr " + name + "(" + arguments + ");\n";
}

}  // namespace

std::string slug(const std::string& title) {
    std::string s;
    for (const char c : title)
        s += std::isalnum(static_cast<unsigned char>(c)) ? static_cast<char>(std::tolower(c)) : '_';
    return s;
}

std::string elementwise_ops(const std::string& table, const std::string& parent) {
    std::istringstream lines(table);
    std::string text, section;
    std::vector<std::string> comment;
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("// ---- ", 0) == 0) {
            std::string title = line.substr(8, line.find(" --", 8) - 8), remark;
            if (const std::size_t colon = title.find(": "); colon != std::string::npos) {
                remark = "Here " + title.substr(colon + 2) + ".";
                title.erase(colon);
            }
            section = parent + "_" + slug(title);
            text += "/// @defgroup " + section + " " + title + "\n/// @ingroup " + parent + "\n";
            if (!remark.empty()) text += documentation({remark}, "");
            text += "\n";
            comment.clear();
        } else if (line.rfind("// ", 0) == 0) {
            comment.push_back(line.substr(3));
        } else if (line.rfind("BITALE_", 0) == 0) {
            const std::size_t open = line.find('(') + 1;
            const std::string name = line.substr(open, line.find(',') - open);
            if (name.find("philox") == 0) continue;  // what RandomStream is made of
            const Row& row = rows().at(name);
            std::vector<std::string> about = comment;
            if (const std::string f = formula(row); !f.empty())
                about.insert(about.begin(), {"Elementwise " + f + ".", ""});
            about.insert(about.end(), {"", "Result type: " + types(row) + ".", "",
                                       "Gradient, where g is that of the result y: " + gradient(row) + "."});
            text += "/// @defgroup op_" + name + " " + name + "\n/// @ingroup " + section + "\n\n" +
                    documentation(about, "") + "/// @ingroup op_" + name + "\n" + declaration(name, row) +
                    "\n";
            comment.clear();
        } else if (line.empty()) {
            comment.clear();
        }
    }
    return text;
}

}  // namespace reference
