// The results of a run as JSON.
#include "common/results.h"

#include <fstream>
#include <nlohmann/json.hpp>

void RunResults::write(const std::string& path) const {
    using Json = nlohmann::ordered_json;
    Json list = Json::array();
    for (const EpochResult& e : epochs)
        list.push_back(Json{{"epoch", e.epoch},
                            {"seconds", e.seconds},
                            {"train_loss", e.train_loss},
                            {"train_error", e.train_error},
                            {"test_loss", e.test_loss},
                            {"test_error", e.test_error}});
    const Json all{{"example", settings.example}, {"device", device},
                   {"storage", settings.storage}, {"batch", settings.batch},
                   {"seed", settings.seed},       {"compile_seconds", compile_seconds},
                   {"kernels", kernels},          {"data_bytes", data_bytes},
                   {"peak_bytes", peak_bytes},    {"epochs", list}};
    std::ofstream file(path);
    file << all.dump(2) << '\n';
    if (!file.flush()) throw bitale::FileError(path + ": cannot be written");
}
