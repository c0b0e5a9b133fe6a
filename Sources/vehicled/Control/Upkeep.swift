// What the daemon tells of itself, and how much it tells its journal. The names are those of OpenMetrics.

import Glibc
import Logging
import Protocols

extension Methods {
  private static let started = Double(Clock.wall()) / 1e6

  func statistics(_ call: Call) throws {
    _ = try call.call.parameters(as: NoParameters.self)
    call.reply(Contract.Statistics.Result(statistics: process() + service() + links()))
  }

  func logLevel(_ call: Call) throws {
    let wanted = try call.call.parameters(as: Contract.LogLevel.Parameters.self).level
    if let wanted {
      guard let level = Logger.Level(rawValue: wanted) else { throw ContractError.invalidParameter(parameter: "level") }
      if level != Journal.level {
        Journal.level = level
        Logger(label: "vehicled").notice(
          "the journal gets what is \(level) or worse from now on", metadata: ["pid": "\(call.peer?.pid ?? 0)"])
      }
    }
    call.reply(Contract.LogLevel.Result(level: Journal.level.rawValue))
  }

  private func process() -> [Contract.Statistic] {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    let seconds = { (time: timeval) in Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    var statistics = [
      Contract.Statistic("vehicled_build_info", "gauge", "The daemon's version.", labels: ["version": Protocols.version], 1),
      Contract.Statistic(
        "vehicled_start_time_seconds", "gauge", "When the daemon started, since the Unix epoch.", unit: "seconds", Self.started),
      Contract.Statistic(
        "vehicled_cpu_seconds", "counter", "CPU time that the daemon has used.", unit: "seconds",
        seconds(usage.ru_utime) + seconds(usage.ru_stime)),
    ]
    let pages = (try? Files.contents(of: "/proc/self/statm", limit: 4096)).map { String(decoding: $0, as: UTF8.self).split(separator: " ") }
    if let resident = pages.flatMap({ $0.count > 1 ? Double($0[1]) : nil }) {
      statistics.append(
        Contract.Statistic(
          "vehicled_memory_resident_bytes", "gauge", "Memory of the daemon that is in RAM.", unit: "bytes",
          resident * Double(sysconf(Int32(_SC_PAGESIZE)))))
    }
    // The list itself is one of them.
    let descriptors = Files.list("/proc/self/fd").count
    if descriptors > 0 {
      statistics.append(
        Contract.Statistic("vehicled_open_files", "gauge", "Descriptors that the daemon has open.", Double(descriptors - 1)))
    }
    return statistics
  }

  private func service() -> [Contract.Statistic] {
    [
      Contract.Statistic("vehicled_clients", "gauge", "Clients connected to the control socket.", Double(admission.sessions.count)),
      Contract.Statistic("vehicled_clients_rejected", "counter", "Clients for whom there was no room.", Double(admission.rejected)),
      Contract.Statistic("vehicled_calls", "counter", "Calls of clients.", Double(calls)),
    ]
      + Journal.records.map {
        Contract.Statistic("vehicled_log_records", "counter", "Records written to the journal.", labels: ["level": $0.rawValue], Double($1))
      }
  }

  private func links() -> [Contract.Statistic] {
    let ports = board.states.flatMap { state in state.device.ports.map { (["device": state.device.name, "link": $0.name.description], $0) }
    }
    return ports.map {
      Contract.Statistic("vehicled_link_connections", "counter", "How often the link came up.", labels: $0, Double($1.connections))
    }
      + ports.map {
        Contract.Statistic(
          "vehicled_link_received_bytes", "counter", "Bytes that came over the link.", unit: "bytes", labels: $0,
          Double($1.carried.received))
      }
      + ports.map {
        Contract.Statistic(
          "vehicled_link_sent_bytes", "counter", "Bytes that were given to the link.", unit: "bytes", labels: $0, Double($1.carried.sent))
      }
  }
}
