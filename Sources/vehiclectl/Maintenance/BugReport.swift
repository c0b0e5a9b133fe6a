// The report that the command bugreport writes: one redacted text file with sections. If a section cannot be collected, it contains the
// reason instead.

import Glibc
import OpenMetrics
import Protocols
import Varlink

struct BugReport {
  /// The kinds with personal data, whose values are redacted.
  private static let personalKinds: Swift.Set<String> = ["health", "heart-rate", "foot-pod", "position", "mirror", "weather", "toy"]
  private static let configurations = ["/etc/vehicled/vehicled.toml", "/etc/vehicled/vehicled.toml.d", "/etc/vehicled/signals.d"]
  private static let maxFileSize = 1 << 18
  private static let maxFiles = 64
  /// The maximum number of lines of a recording.
  private static let maxLines = 20_000

  private var text = [
    "vehicled report \(version)",
    "Read it before you send it: VINs, addresses, names and places are redacted (\(Redaction.mark)), but check that nothing was missed.",
  ]
  private var names = Redaction.Names()

  /// The report, with every name redacted in all sections.
  var lines: [String] { text.map(names.removed) }

  private mutating func section(_ title: String, _ text: [String]) {
    self.text += ["", "== \(title) =="] + (text.isEmpty ? ["(nothing)"] : text.map(Output.oneLine))
  }

  // MARK: System

  /// Adds the sections that need no daemon.
  mutating func addLocalSections(socket: String) {
    var name = utsname()
    uname(&name)
    let kernel = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    let machine = withUnsafeBytes(of: &name.machine) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    let system = Self.read("/etc/os-release").lines.first { $0.hasPrefix("PRETTY_NAME=") }?.dropFirst(12) ?? ""
    section("system", ["vehiclectl \(version)", "kernel \(kernel) \(machine)", "distribution \(system)"])
    section("doctor", LocalChecks.findings(socket: socket).map { DoctorCommand.line($0) { text, _ in text } }.map(Redaction.text))
    let files = Self.configurations.flatMap(Self.files)
    for file in files.prefix(Self.maxFiles) {
      let (lines, remarks) = Self.read(file)
      section(file, Redaction.configuration(lines, &names) + remarks)
    }
    let serial = ["/dev/serial/by-id", "/dev/serial/by-path"].flatMap { folder in Self.files(folder) }
    section("serial ports", serial.map(Redaction.text))
    section("unit", Self.output("systemctl", "status", "--no-pager", "--lines=0", "vehicled.service", "vehicled.socket"))
    section("journal", Self.output("journalctl", "--unit=vehicled", "--no-pager", "--lines=1000", "--output=short-iso-precise"))
  }

  private static func output(_ program: String, _ arguments: String...) -> [String] {
    let text = ExternalProgram.output([program] + arguments, within: 20)
    guard let text else { return ["(no output from \(program): it failed or is not installed; try sudo)"] }
    return text.split(separator: "\n", omittingEmptySubsequences: false).map { Redaction.text(String($0)) }
  }

  /// The sorted entries of a directory, including symbolic links; the path itself if it is not a directory; empty if it does not exist.
  private static func files(_ path: String) -> [String] {
    var state = stat()
    guard lstat(path, &state) == 0 else { return [] }
    guard state.st_mode & S_IFMT == S_IFDIR, let folder = opendir(path) else { return [path] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if !name.hasPrefix(".") { names.append("\(path)/\(name)") }
    }
    return names.sorted()
  }

  /// The lines of a file, and remarks, such as an error.
  private static func read(_ path: String) -> (lines: [String], remarks: [String]) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
    guard descriptor >= 0 else { return ([], ["(cannot open: \(String(cString: strerror(errno))))"]) }
    defer { close(descriptor) }
    var state = stat()
    guard fstat(descriptor, &state) == 0, state.st_mode & S_IFMT == S_IFREG else { return ([], ["(not a regular file)"]) }
    var bytes = [UInt8](repeating: 0, count: maxFileSize)
    let count = max(0, Glibc.read(descriptor, &bytes, bytes.count))
    let text = String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    return (text, count == maxFileSize ? ["(truncated)"] : [])
  }

  // MARK: Daemon

  /// Adds the daemon's version, findings, devices and metrics, then a recording of `seconds` seconds for each device that has a link up.
  /// Devices with personal data have no metrics and no recording. Kind `can`, which receives all frames of a bus, and devices with a
  /// position have no recording.
  mutating func addDaemonSections(
    _ client: Client, seconds: Double, progress: (String?) -> Void, connect: () throws(Failure) -> Client
  ) throws {
    let info = try client.call(VarlinkService.GetInfo.self, .init())
    section("daemon", ["\(info.product) \(info.version)"])
    let findings = try client.call(Contract.Diagnose.self, NoParameters()).findings
    section("findings of the daemon", findings.map { DoctorCommand.line($0) { text, _ in text } }.map(Redaction.text))
    let devices = try client.call(Contract.Status.self, .init()).devices
    for device in devices { section("device \(device.name)", Self.lines(device, &names)) }
    let schemas = try client.call(Contract.Describe.self, .init()).schemas
    let statistics = try client.call(Contract.Statistics.self, .init()).statistics
    let shown = devices.filter { !Self.personalKinds.contains($0.kind) }
    section("metrics", OpenMetrics.text(OpenMetrics.published(shown, with: []), schemas, statistics))
    let up = shown.filter { device in
      device.kind != "can" && device.links.contains { $0.state == "up" }
        && !device.readings.contains { PositionPrivacy.isPosition($0.property, kind: device.kind) }
    }.map(\.name)
    for (name, lines) in zip(up, try Self.recordLinks(of: up, seconds, progress, connect)) {
      section("links of \(name), \(Value.text(seconds)) s", lines)
    }
  }

  static func lines(_ device: Contract.Device, _ names: inout Redaction.Names) -> [String] {
    let isPersonal = personalKinds.contains(device.kind)
    let links = device.links.map { link in
      let details = (link.details ?? [:]).sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
      return "link \(link.name) \(Redaction.link(link.url, &names)) "
        + Redaction.text("\(link.state)\(link.reason.map { ": \($0)" } ?? "")\(details)")
    }
    let readings = device.readings.map { reading in
      guard let value = reading.value else { return "\(reading.property): none (\(Redaction.text(reading.reason ?? "")))" }
      let isHidden =
        isPersonal || ["vin", "name"].contains(reading.property) || PositionPrivacy.isPosition(reading.property, kind: device.kind)
      let text = reading.property == "last-bad-reply" ? Redaction.reply(Format.text(value)) : Format.text(value)
      let shown = isHidden ? Redaction.mark : Redaction.text(text)
      let unit = reading.unit.map { " \($0)" } ?? ""
      return "\(reading.property): \(shown)\(unit)\(reading.age.map { ", \(Format.duration($0)) old" } ?? "")"
    }
    return ["kind \(device.kind), \(device.state)\(device.fault.map { ", fault: \(Redaction.text($0))" } ?? "")"] + links + readings
  }

  /// Records the links of these devices, all at the same time. Returns the redacted lines of each, with the error if one occurred.
  private static func recordLinks(
    of devices: [String], _ seconds: Double, _ progress: (String?) -> Void, _ connect: () throws(Failure) -> Client
  ) throws(Failure) -> [[String]] {
    var lines = [[String]](repeating: [], count: devices.count)
    var errors = lines
    var clients: [Client?] = []
    for (index, device) in devices.enumerated() {
      do throws(Failure) {
        let client = try connect()
        try client.begin(Contract.Record.self, .init(device: device), more: true)
        clients.append(client)
      } catch {
        errors[index] = ["(\(error.message))"]
        clients.append(nil)
      }
    }
    let end = Clock.monotonic + seconds
    defer { progress(nil) }
    while Clock.monotonic < end, !Interrupt.received, clients.contains(where: { $0 != nil }) {
      let left = Int((end - Clock.monotonic).rounded(.up))
      progress("recording \(devices.count == 1 ? devices[0] : "\(devices.count) devices"): \(left) s left")
      Client.wait(for: clients.compactMap { $0?.descriptor }, until: min(end, Clock.monotonic + 0.5))
      for (index, client) in clients.enumerated() {
        do throws(Failure) {
          while lines[index].count < maxLines, let result = try client?.next(Contract.Record.self) { lines[index].append(result.line) }
        } catch { errors[index] = ["(\(error.message))"] }
        if !errors[index].isEmpty || lines[index].count >= maxLines { clients[index] = nil }
      }
    }
    return zip(lines, errors).map { Redaction.recording($0) + $1 }
  }
}
