// The results of a run as JSON.
#include "common/results.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

using Json = nlohmann::ordered_json;

namespace {

void put(Json& to, const std::string& set, const Score& score) {
    to[set + "_loss"] = score.loss;
    to[set + "_error"] = score.error;
}

}  // namespace

void RunResults::write(const std::string& path) const {
    Json all{{"example", settings.example}, {"device", device},         {"storage", settings.storage},
             {"batch", settings.batch},     {"seed", settings.seed},    {"compile_seconds", compile_seconds},
             {"kernels", kernels},          {"data_bytes", data_bytes}, {"peak_bytes", peak_bytes},
             {"epochs", Json::array()}};
    for (const EpochResult& e : epochs) {
        Json row{{"epoch", e.epoch}, {"seconds", e.seconds}};
        put(row, "train", e.train);
        put(row, judge, e.judged);
        all["epochs"].push_back(row);
    }
    for (const Choice& choice : settings.choices) all[choice.name] = choice.value;
    if (!source.empty()) all["source"] = source;
    if (!trained.empty())
        for (const SetResult& r : trained) put(all["trained"], r.set, r.score);
    std::ofstream file(path);
    file << all.dump(2) << '\n';
    if (!file.flush()) throw bitale::FileError(path + ": cannot be written: " + std::strerror(errno));
}
