// What doctor sees without the daemon: the unit, the socket and who may use it, the clock. The rest the daemon itself knows.

import CLinux
import Glibc
import Protocols

enum LocalChecks {
  private static let unit = "vehicled.service"

  static func findings(socket: String) -> [Contract.Finding] {
    var findings = socket == Client.defaultSocket ? unit(properties(of: unit), properties(of: "vehicled.socket")) : []
    findings.append(access(to: socket))
    findings.append(clock())
    if let finding = modemManager() { findings.append(finding) }
    return findings
  }

  // MARK: The unit

  /// What systemd knows of a unit; nil where there is no systemd.
  private static func properties(of unit: String) -> [String: String]? {
    let names = "LoadState,ActiveState,SubState,UnitFileState,NRestarts,Result,FragmentPath,NeedDaemonReload"
    guard let text = ExternalProgram.output(["systemctl", "show", unit, "--property", names]) else { return nil }
    let pairs = text.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false) }
    return Dictionary(pairs.filter { $0.count == 2 }.map { (String($0[0]), String($0[1])) }) { first, _ in first }
  }

  static func unit(_ service: [String: String]?, _ socket: [String: String]?) -> [Contract.Finding] {
    guard let service else { return [Contract.Finding("unit", "warning", "there is no systemd here to ask", nil)] }
    guard service["LoadState"] != "not-found" else {
      return [Contract.Finding("unit", "warning", "\(unit) is not installed", "sudo make install, or install the package")]
    }
    var findings: [Contract.Finding] = []
    func add(_ state: String, _ text: String, _ remedy: String?) { findings.append(Contract.Finding("unit", state, text, remedy)) }
    if service["LoadState"] == "masked" { add("failed", "\(unit) is masked", "sudo systemctl unmask \(unit)") }
    switch service["ActiveState"] {
    case "active": add("ok", "\(unit) runs", nil)
    case "activating": add("warning", "\(unit) is starting", "systemctl status \(unit)")
    case "failed":
      let why = service["Result"] == "start-limit-hit" ? "failed too often in a row" : "failed (\(service["Result"] ?? "nobody says why"))"
      add(
        "failed", "\(unit) \(why)", "journalctl -u \(unit) -n 30; then sudo systemctl reset-failed \(unit) && sudo systemctl start \(unit)")
    default: add("failed", "\(unit) does not run", "sudo systemctl start \(unit)")
    }
    if let restarts = service["NRestarts"].flatMap({ Int($0) }), restarts > 0 {
      add(
        "warning", "it was restarted \(restarts) times by itself", "journalctl -u \(unit) -p warning; report it with vehiclectl bugreport")
    }
    for (name, state) in [(unit, service), ("vehicled.socket", socket ?? [:])] where state["UnitFileState"] == "disabled" {
      add("warning", "\(name) does not start with the machine", "sudo systemctl enable \(name)")
    }
    if service["NeedDaemonReload"] == "yes" { add("warning", "its files have changed", "sudo systemctl daemon-reload") }
    return findings
  }

  // MARK: The socket

  /// Whether whoever asks gets in, and whom the socket lets in.
  private static func access(to path: String) -> Contract.Finding {
    var state = stat()
    guard stat(path, &state) == 0 else {
      let remedy = "vehicled --check-config; then sudo systemctl start vehicled, or give the socket with --socket"
      return Contract.Finding("socket", "failed", "there is none at \(path)", remedy)
    }
    guard state.st_mode & S_IFMT == S_IFSOCK else {
      return Contract.Finding("socket", "failed", "\(path) is no socket", "give the daemon's socket with --socket")
    }
    let group = getgrgid(state.st_gid).map { String(cString: $0.pointee.gr_name) } ?? "\(state.st_gid)"
    if Glibc.access(path, R_OK | W_OK) == 0 { return Contract.Finding("socket", "ok", "\(path) lets you in (group \(group))", nil) }
    let user = getpwuid(getuid()).map { String(cString: $0.pointee.pw_name) } ?? "USER"
    return Contract.Finding(
      "socket", "failed", "\(path) does not let you in: it is for group \(group)",
      accessRemedy(group: state.st_gid == 0 ? nil : group, user: user, isMember: isMember(user, of: group)))
  }

  /// How a user gets in. Nobody is to become one of root's group for this: it is given as nil.
  static func accessRemedy(group: String?, user: String, isMember: Bool) -> String {
    guard let group else { return "start the daemon as the service does, whose socket is for group vehicled, or name users in [control]" }
    return isMember
      ? "log out and in again: your session is older than your membership" : "sudo usermod -aG \(group) \(user), then log in again"
  }

  /// Whether the user database counts the user as one of the group, whatever this session may do.
  private static func isMember(_ user: String, of group: String) -> Bool {
    guard let entry = getgrnam(group), var member = entry.pointee.gr_mem else { return false }
    while let name = member.pointee {
      if String(cString: name) == user { return true }
      member += 1
    }
    return false
  }

  // MARK: The machine

  /// Times of readings, recordings and cleared codes come from this clock.
  private static func clock() -> Contract.Finding {
    let kept = clinux_clock_is_synchronised()
    return clock(year: year(), isSynchronised: kept < 0 ? nil : kept == 1)
  }

  private static func year() -> Int {
    var (now, parts) = (time(nil), tm())
    gmtime_r(&now, &parts)
    return Int(parts.tm_year) + 1900
  }

  static func clock(year: Int, isSynchronised: Bool?) -> Contract.Finding {
    if year < 2026 {
      return Contract.Finding("time", "failed", "the clock says \(year)", "sudo timedatectl set-ntp true, or set it with date")
    }
    guard isSynchronised != false else {
      return Contract.Finding("time", "warning", "nothing keeps the clock right", "sudo timedatectl set-ntp true")
    }
    return Contract.Finding("time", "ok", isSynchronised == nil ? "the clock says \(year)" : "the clock is kept right", nil)
  }

  /// systemd leaves this link while a unit runs.
  private static let modemManagerRuns = "/run/systemd/units/invocation:ModemManager.service"

  /// It asks every serial port whether it is a modem, with commands that an ELM327 answers.
  private static func modemManager() -> Contract.Finding? {
    var state = stat()
    guard lstat(modemManagerRuns, &state) == 0 else { return nil }
    return Contract.Finding(
      "serial ports", "ok",
      "ModemManager is told to leave ports alone that the configuration names by their place in /dev/serial; others it tries for modems",
      nil)
  }
}
