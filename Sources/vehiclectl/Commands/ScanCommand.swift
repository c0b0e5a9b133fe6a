// scan: what is heard on Bluetooth Low Energy, and the serial ports there are. A line for each when it is first heard (or
// first tells its name); with --json one object a line for everything that is heard.

import ArgumentParser
import Glibc
import Protocols

struct ScanCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "scan", abstract: "Search for adapters and devices nearby.",
    discussion: """
      What looks like something that vehicled can talk to is marked with its kind. Links go on meanwhile.
      With --json each line is {"transport","address","name","rssi","kind","time"}.
      """)

  enum Transport: String, ExpressibleByArgument, CaseIterable {
    case ble, serial
  }

  @OptionGroup var common: CommonOptions
  @Option(help: "How long.", transform: WatchCommand.positive)
  var seconds = 10
  @Argument(help: "Only ble or serial; usually both.")
  var transport: Transport?

  func validate() throws {
    if seconds > 3600 { throw ValidationError("--seconds \(seconds) is too long: give 1 to 3600") }
  }

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    Interrupt.catchSignals()
    let end = Clock.monotonic + Double(seconds)
    var heard: [String: String] = [:]
    var reason: String?
    defer { output.progress(nil) }
    let parameters = Contract.Scan.Parameters(transport: transport?.rawValue, seconds: seconds)
    try client.stream(Contract.Scan.self, parameters, first: nil, tick: 0.5, silence: nil) { result in
      if Interrupt.received { return false }
      if let result { reason = result.reason }
      if let found = result?.found {
        if output.json {
          output.json(JSON(found))
        } else if heard.updateValue(found.name ?? "", forKey: found.address) != found.name ?? "" {
          output.progress(nil)
          output.line(output.fit(Self.line(found, paint: output.paint)))
        }
      }
      let doing = reason.map { "waiting: \($0)" } ?? "searching"
      output.progress("\(doing): \(heard.count) heard, \(Int(max(0, end - Clock.monotonic).rounded(.up))) s left")
      return result?.searching ?? true
    }
    output.progress(nil)
    if heard.isEmpty, !output.json { output.note("nothing was heard") }
  }

  static func line(_ found: Contract.Discovery, paint: (String, Style) -> String) -> String {
    let strength = found.rssi.map { "\($0) dBm" } ?? ""
    let fields = [found.transport, found.address, strength].map { Output.oneLine($0) }
    let widths = [6, 17, 8]
    let head = zip(fields, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }.joined(separator: "  ")
    let kind = found.kind.map { "  " + paint(Output.oneLine($0), .good) } ?? ""
    return head + "  " + Output.oneLine(found.name ?? "-") + kind
  }
}
