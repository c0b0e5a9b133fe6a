// The checks of doctor that need no daemon: unit, socket and access to it, clock, ModemManager.

import CLinux
import Glibc
import Protocols
import Varlink

enum LocalChecks {
  private static let unit = "vehicled.service"

  static func findings(socket: String) -> [Contract.Finding] {
    var findings = socket == Client.defaultSocket ? unit(properties(of: unit), properties(of: "vehicled.socket")) : []
    findings.append(access(to: socket))
    findings.append(clock())
    if let finding = modemManager() { findings.append(finding) }
    if socket == Client.defaultSocket {
      findings += ["vehicled-history", "vehicled-mqtt", "vehicled-web"].compactMap { service($0, properties(of: $0 + ".service")) }
    }
    return findings
  }

  // MARK: The unit

  /// The properties of a unit; nil without systemd.
  private static func properties(of unit: String) -> [String: String]? {
    let names = "LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,FragmentPath,NeedDaemonReload,StatusText"
    guard let text = ExternalProgram.output(["systemctl", "show", unit, "--property", names]) else { return nil }
    let pairs = text.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false) }
    return Dictionary(pairs.filter { $0.count == 2 }.map { (String($0[0]), String($0[1])) }) { first, _ in first }
  }

  static func unit(_ service: [String: String]?, _ socket: [String: String]?) -> [Contract.Finding] {
    guard let service else { return [Contract.Finding("unit", "warning", "not checked: systemd is not running", nil)] }
    guard service["LoadState"] != "not-found" else {
      return [Contract.Finding("unit", "warning", "\(unit) is not installed", "install the package, or run: sudo make install")]
    }
    var findings: [Contract.Finding] = []
    func add(_ state: String, _ text: String, _ remedy: String?) { findings.append(Contract.Finding("unit", state, text, remedy)) }
    if service["LoadState"] == "masked" { add("failed", "\(unit) is masked", "sudo systemctl unmask \(unit)") }
    switch service["ActiveState"] {
    case "active": add("ok", "\(unit) is running", nil)
    case "activating": add("warning", "\(unit) is starting", "systemctl status \(unit)")
    case "failed":
      let cause = service["Result"] == "start-limit-hit" ? "it failed too many times in a row" : "result \(service["Result"] ?? "unknown")"
      add(
        "failed", "\(unit) failed: \(cause)",
        "journalctl -u \(unit) -n 30; then sudo systemctl reset-failed \(unit) && sudo systemctl start \(unit)")
    default: add("failed", "\(unit) is not running", "sudo systemctl start \(unit)")
    }
    if let restarts = service["NRestarts"].flatMap({ Int($0) }), restarts > 0 {
      add(
        "warning", "\(unit) was restarted \(restarts) time\(restarts == 1 ? "" : "s") after a failure",
        "journalctl -u \(unit) -p warning; report it with vehiclectl bugreport")
    }
    for (name, state) in [(unit, service), ("vehicled.socket", socket ?? [:])] where state["UnitFileState"] == "disabled" {
      add("warning", "\(name) does not start at boot", "sudo systemctl enable \(name)")
    }
    if service["NeedDaemonReload"] == "yes" { add("warning", "\(unit) has changed on disk", "sudo systemctl daemon-reload") }
    return findings
  }

  /// The state of another service, as it reports it to systemd; nil if it is not used.
  static func service(_ name: String, _ properties: [String: String]?) -> Contract.Finding? {
    guard let properties, properties["LoadState"] == "loaded" else { return nil }
    let status = properties["StatusText"] ?? ""
    switch properties["ActiveState"] {
    case "active":
      let isGood = status.isEmpty || ["connected", "recording", "serving"].contains { status.hasPrefix($0) }
      return isGood
        ? Contract.Finding(name, "ok", status.isEmpty ? "running" : status, nil)
        : Contract.Finding(name, "warning", status, "journalctl -u \(name) -n 30")
    case "failed":
      return Contract.Finding(
        name, "failed", "the service failed: result \(properties["Result"] ?? "unknown")",
        "journalctl -u \(name) -n 30; then sudo systemctl restart \(name)")
    default:
      guard properties["UnitFileState"] == "enabled" else { return nil }
      return Contract.Finding(name, "warning", "enabled, but not running", "sudo systemctl start \(name)")
    }
  }

  // MARK: The socket

  /// Checks whether the user can connect to the socket.
  private static func access(to path: String) -> Contract.Finding {
    var state = stat()
    guard stat(path, &state) == 0 else {
      let remedy = "vehicled --check-config; then sudo systemctl start vehicled, or use --socket PATH"
      return Contract.Finding("socket", "failed", "\(path) does not exist", remedy)
    }
    guard state.st_mode & S_IFMT == S_IFSOCK else {
      return Contract.Finding("socket", "failed", "\(path) is not a socket", "use --socket PATH")
    }
    if Glibc.access(path, R_OK | W_OK) == 0 { return Contract.Finding("socket", "ok", "you can connect to \(path)", nil) }
    let access = SocketAccess(to: path, of: .daemon)
    let who = access.group.map { "only members of group \($0) can connect" } ?? "no group can connect"
    return Contract.Finding("socket", "failed", "no access to \(path): \(who)", access.remedy)
  }

  // MARK: The computer

  /// Checks the clock, because readings, recordings and records of cleared codes contain its time.
  private static func clock() -> Contract.Finding {
    let state = clinux_clock_is_synchronised()
    return clock(year: year(), isSynchronised: state < 0 ? nil : state == 1)
  }

  private static func year() -> Int {
    var (now, parts) = (time(nil), tm())
    gmtime_r(&now, &parts)
    return Int(parts.tm_year) + 1900
  }

  static func clock(year: Int, isSynchronised: Bool?) -> Contract.Finding {
    if year < 2026 {
      return Contract.Finding(
        "time", "failed", "the clock is wrong: the year is \(year)", "sudo timedatectl set-ntp true, or set it with date")
    }
    guard isSynchronised != false else {
      return Contract.Finding("time", "warning", "the clock is not synchronised", "sudo timedatectl set-ntp true")
    }
    let text = isSynchronised == nil ? "the clock is set to \(year); synchronisation unknown" : "the clock is synchronised"
    return Contract.Finding("time", "ok", text, nil)
  }

  /// systemd keeps this symbolic link while the unit is running.
  private static let modemManagerInvocation = "/run/systemd/units/invocation:ModemManager.service"

  /// A finding if ModemManager is running, because it probes serial ports with AT commands, to which an ELM327 responds.
  private static func modemManager() -> Contract.Finding? {
    var state = stat()
    guard lstat(modemManagerInvocation, &state) == 0 else { return nil }
    return Contract.Finding(
      "serial ports", "ok",
      "ModemManager ignores ports that the configuration names by their path in /dev/serial; it probes others for modems",
      nil)
  }
}
