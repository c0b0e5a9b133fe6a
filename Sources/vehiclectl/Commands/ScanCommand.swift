// scan: Bluetooth Low Energy devices in range and serial ports. Prints each one when it is first found, and again with a new name.

import ArgumentParser
import Glibc
import Protocols
import Varlink

struct ScanCommand: Subcommand {
  static let configuration = CommandConfiguration(
    commandName: "scan", abstract: "Find serial ports and Bluetooth devices in range.",
    discussion: """
      Devices that vehicled supports are marked with their kind. A scan does not interrupt open links.
      If Bluetooth is unavailable, the command lists the serial ports and then prints the error. In this case, the exit status is \
      0 if a serial port was found, and 1 otherwise.
      With --toml it prints the lines of configuration for the recognised devices at the end; vehiclectl setup adds them.
      With --json each line is {"transport","address","name","rssi","kind","time"}.
      """)

  enum Transport: String, ExpressibleByArgument, CaseIterable {
    case ble, serial
  }

  @OptionGroup var common: CommonOptions
  @Option(help: "Scan for this many seconds, 1 to 3600.", transform: WatchCommand.positive)
  var seconds = 10
  @Flag(help: "Print the lines of configuration for the recognised devices.")
  var toml = false
  @Argument(help: "Scan only for this: ble or serial.")
  var transport: Transport?

  func validate() throws {
    if toml, common.json { throw ValidationError("--toml and --json are mutually exclusive; use one") }
    if seconds > 3600 { throw ValidationError("invalid --seconds \(seconds); use 1 to 3600") }
  }

  func perform(_ output: Output) throws {
    let client = try common.connect(output)
    Interrupt.catchSignals()
    let end = Clock.monotonic + Double(seconds)
    var found: [String: String] = [:]
    var reason: String?
    let devices = toml ? try client.call(Contract.Status.self, .init(device: nil)).devices : []
    var candidates: [Candidate] = []
    defer { output.progress(nil) }
    let parameters = Contract.Scan.Parameters(transport: transport?.rawValue, seconds: seconds)
    do {
      try client.stream(Contract.Scan.self, parameters, firstReply: nil, tick: 0.5, laterReplies: nil) { result in
        if Interrupt.received { return false }
        if let result { reason = result.reason }
        if let device = result?.found {
          let isNew = found.updateValue(device.name ?? "", forKey: device.address) != device.name ?? ""
          candidates.note(Candidate(device))
          if output.json {
            output.json(JSON(device))
          } else if isNew, !toml {
            output.progress(nil)
            output.line(output.fit(Self.line(device, paint: output.paint)))
          }
        }
        let state = reason.map { "waiting: \($0)" } ?? "scanning"
        output.progress("\(state): \(found.count) found, \(Int(max(0, end - Clock.monotonic).rounded(.up))) s left")
        return result?.searching ?? true
      }
    } catch Failure.rejected(.deviceError("", let code, let message)) where transport == nil && !found.isEmpty {
      finish(candidates, devices, output)
      return output.printError(.rejected(.deviceError(device: "", code: code, message: message)))
    }
    finish(candidates, devices, output)
    if found.isEmpty, !output.json { output.note("nothing found") }
  }

  /// Prints the configuration of the recognised devices, or how to set them up.
  private func finish(_ found: [Candidate], _ devices: [Contract.Device], _ output: Output) {
    output.progress(nil)
    if toml {
      output.lines(DeviceSection.lines(for: found.arranged, devices))
    } else if found.contains(where: { $0.kind != nil }), !output.json, Terminal.isTerminal(STDERR_FILENO) {
      output.note("to add a device to the configuration: vehiclectl setup")
    }
  }

  static func line(_ device: Contract.Discovery, paint: (String, Style) -> String) -> String {
    let strength = device.rssi.map { "\($0) dBm" } ?? ""
    let fields = [device.transport, device.address, strength].map { Output.oneLine($0) }
    let widths = [6, 17, 8]
    let head = zip(fields, widths).map { $0 + String(repeating: " ", count: max(0, $1 - $0.count)) }.joined(separator: "  ")
    let kind = device.kind.map { "  " + paint(Output.oneLine($0), .good) } ?? ""
    return head + "  " + Output.oneLine(device.name ?? "-") + kind
  }
}
