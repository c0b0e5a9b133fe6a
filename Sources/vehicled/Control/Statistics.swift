// The Statistics and LogLevel methods. Names and types follow OpenMetrics.

import Glibc
import Logging
import Protocols
import ServiceRuntime
import Varlink

extension Methods {
  private static let started = Double(Clock.wall()) / 1e6

  func statistics(_ call: Call) throws {
    _ = try call.request.parameters(as: NoParameters.self)
    call.reply(Contract.Statistics.Result(statistics: process() + service() + links()))
  }

  func logLevel(_ call: Call) throws {
    let requested = try call.request.parameters(as: Contract.LogLevel.Parameters.self).level
    if let requested {
      guard let level = Logger.Level(rawValue: requested) else { throw ContractError.invalidParameter(parameter: "level") }
      if level != Journal.level {
        Journal.level = level
        Logger(label: "vehicled").notice(
          "log level set to \(level)", metadata: ["pid": "\(call.peer?.pid ?? 0)"])
      }
    }
    call.reply(Contract.LogLevel.Result(level: Journal.level.rawValue))
  }

  private func process() -> [Contract.Statistic] {
    var usage = rusage()
    getrusage(RUSAGE_SELF.rawValue, &usage)
    let seconds = { (time: timeval) in Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    var statistics = [
      Contract.Statistic("vehicled_build_info", "gauge", "Version of the daemon.", labels: ["version": Protocols.version], 1),
      Contract.Statistic(
        "vehicled_start_time_seconds", "gauge", "Start time of the daemon since the Unix epoch.", unit: "seconds", Self.started),
      Contract.Statistic(
        "vehicled_cpu_seconds", "counter", "CPU time used by the daemon.", unit: "seconds",
        seconds(usage.ru_utime) + seconds(usage.ru_stime)),
    ]
    let pages = (try? Files.contents(of: "/proc/self/statm", limit: 4096)).map { String(decoding: $0, as: UTF8.self).split(separator: " ") }
    if let resident = pages.flatMap({ $0.count > 1 ? Double($0[1]) : nil }) {
      statistics.append(
        Contract.Statistic(
          "vehicled_memory_resident_bytes", "gauge", "Resident memory of the daemon.", unit: "bytes",
          resident * Double(sysconf(Int32(_SC_PAGESIZE)))))
    }
    // The listing itself uses one descriptor.
    let descriptors = Files.list("/proc/self/fd").count
    if descriptors > 0 {
      statistics.append(
        Contract.Statistic("vehicled_open_files", "gauge", "File descriptors open in the daemon.", Double(descriptors - 1)))
    }
    return statistics
  }

  private func service() -> [Contract.Statistic] {
    [
      Contract.Statistic("vehicled_clients", "gauge", "Clients connected to the control socket.", Double(admission.sessions.count)),
      Contract.Statistic(
        "vehicled_clients_rejected", "counter", "Clients rejected because of the connection limits.", Double(admission.rejected)),
      Contract.Statistic("vehicled_calls", "counter", "Calls received from clients.", Double(calls)),
    ]
      + Journal.records.map {
        Contract.Statistic("vehicled_log_records", "counter", "Records written to the journal.", labels: ["level": $0.rawValue], Double($1))
      }
  }

  private func links() -> [Contract.Statistic] {
    let ports = hub.states.flatMap { state in state.device.ports.map { (["device": state.device.name, "link": $0.name.description], $0) }
    }
    return ports.map {
      Contract.Statistic("vehicled_link_connections", "counter", "Times the link came up.", labels: $0, Double($1.connections))
    }
      + ports.map {
        Contract.Statistic(
          "vehicled_link_received_bytes", "counter", "Bytes received over the link.", unit: "bytes", labels: $0,
          Double($1.transferred.received))
      }
      + ports.map {
        Contract.Statistic(
          "vehicled_link_sent_bytes", "counter", "Bytes sent over the link.", unit: "bytes", labels: $0, Double($1.transferred.sent))
      }
  }
}
