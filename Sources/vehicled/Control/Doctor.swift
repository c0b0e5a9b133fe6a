// What a client that calls Diagnose is told: whether what devices need is there, and how to mend what is not. Looks, and
// changes nothing.

import Glibc
import Protocols

@Loop final class Doctor: BlueZObserver {
  private let board: Board
  private let blueZ: BlueZ
  private let accounts: Accounts
  /// The names of the groups that serial ports are for, once they are looked up.
  private var groups: Accounts.Answers?
  /// Where what is kept lies.
  private let directory: String
  private let finish: @Loop ([Contract.Finding]) -> Void
  private var isDone = false
  private lazy var timer = Timer { [weak self] _ in self?.conclude() }

  private static let timeout: Nanoseconds = 3 * .second

  /// Looks at everything once it has begun; `finish` is told once.
  init(_ board: Board, _ blueZ: BlueZ, _ accounts: Accounts, directory: String, finish: @escaping @Loop ([Contract.Finding]) -> Void) {
    self.board = board
    self.blueZ = blueZ
    self.accounts = accounts
    self.directory = directory
    self.finish = finish
  }

  func begin() {
    timer.set(Clock.monotonic() + Self.timeout)
    blueZ.add(self)
    accounts.find(Set(serialPaths.compactMap(Self.group))) { [weak self] answers in
      self?.groups = answers
      self?.blueZChanged()
    }
  }

  func cancel() {
    isDone = true
    timer.set(nil)
    blueZ.remove(self)
  }

  func blueZChanged() {
    if blueZ.presence != .unknown, groups != nil { conclude() }
  }

  private func conclude() {
    guard !isDone else { return }
    cancel()
    finish(bluetooth() + [disk()] + serialPorts() + board.states.flatMap(device))
  }

  // MARK: Disk

  /// Whether what is learned and acknowledged can be kept.
  private func disk() -> Contract.Finding {
    // It is made when something is kept.
    var place = directory
    var space = statvfs()
    while statvfs(place, &space) != 0 {
      guard errno == ENOENT, let slash = place.lastIndex(of: "/"), slash != place.startIndex else {
        return Contract.Finding(
          "disk", "failed", "\(directory): \(systemWords(errno))", "sudo install -d -o vehicled -g vehicled -m 700 \(directory)")
      }
      place = String(place[..<slash])
    }
    var state = stat()
    guard stat(place, &state) == 0, state.st_mode & S_IFMT == S_IFDIR else {
      return Contract.Finding("disk", "failed", "\(place) is no directory: nothing is kept", "name another with --state, or move it away")
    }
    let isReadOnly = space.f_flag & UInt(ST_RDONLY) != 0
    let isOurs = access(place, W_OK) == 0
    return Self.disk(
      directory, free: UInt64(space.f_bavail) * UInt64(space.f_frsize), files: space.f_files == 0 ? nil : UInt64(space.f_favail),
      isReadOnly: isReadOnly, isOurs: isOurs)
  }

  /// So many bytes are enough for a daemon that keeps a few kilobytes, but not for a recording.
  private nonisolated static let (tight, full): (UInt64, UInt64) = (100_000_000, 1_000_000)

  nonisolated static func disk(_ directory: String, free: UInt64, files: UInt64?, isReadOnly: Bool, isOurs: Bool) -> Contract.Finding {
    let megabytes = free / 1_000_000
    if isReadOnly {
      return Contract.Finding(
        "disk", "failed", "\(directory) is read-only: nothing is kept", "journalctl -k -p err; then mount -o remount,rw")
    }
    if !isOurs { return Contract.Finding("disk", "failed", "\(directory) is not ours to write", "sudo chown -R vehicled: \(directory)") }
    if free < full || files == 0 {
      return Contract.Finding(
        "disk", "failed", "\(directory) is full: nothing is kept", "make room; recordings lie in \(directory)/recordings")
    }
    guard free >= tight else {
      let remedy = "make room; recordings lie in \(directory)/recordings"
      return Contract.Finding("disk", "warning", "\(directory) has \(megabytes) MB left", remedy)
    }
    return Contract.Finding("disk", "ok", "\(directory) has \(megabytes) MB left", nil)
  }

  // MARK: Serial ports

  /// The ports that the configuration names.
  private var serialPaths: [String] {
    board.states.flatMap(\.device.ports).compactMap { port in
      if case .serial(let path, _) = port.url, path.hasPrefix("/dev/") { path } else { nil }
    }
  }

  /// The group that a port is for.
  private static func group(of path: String) -> Accounts.Query? {
    var state = stat()
    return stat(path, &state) == 0 ? .groupName(state.st_gid) : nil
  }

  /// Whether the ports are there and ours. Opens none: some start when they are opened.
  private func serialPorts() -> [Contract.Finding] {
    serialPaths.map { path in
      var state = stat()
      guard stat(path, &state) == 0 else {
        return Contract.Finding(path, "failed", systemWords(errno), "plug the adapter in; vehiclectl scan lists the ports there are")
      }
      guard access(path, R_OK | W_OK) == 0 else {
        let group = if case .name(let name)? = groups?[.groupName(state.st_gid)] { name } else { "\(state.st_gid)" }
        return Contract.Finding(
          path, "failed", "it is for group \(group), and the daemon is not in it",
          "sudo usermod -aG \(group) vehicled && sudo systemctl restart vehicled")
      }
      guard path.hasPrefix("/dev/serial/") else {
        return Contract.Finding(
          path, "warning", "the port is ours, but its name goes to whichever is plugged in first, and ModemManager tries it",
          "name it by its place in /dev/serial/by-id; see vehiclectl scan")
      }
      return Contract.Finding(path, "ok", "the port is ours", nil)
    }
  }

  private func bluetooth() -> [Contract.Finding] {
    var findings: [Contract.Finding] = []
    let needsIt = board.states.contains { $0.device.ports.contains { $0.url.scheme == "ble" } }
    guard needsIt || blueZ.presence == .present else {
      return [Contract.Finding("bluetooth", "ok", "not there, and no device needs it", nil)]
    }
    let bad = needsIt ? "failed" : "warning"
    switch blueZ.presence {
    case .unknown: findings.append(Contract.Finding("bluetooth", bad, "BlueZ does not answer", "systemctl status bluetooth"))
    case .absent(let reason):
      let parts = reason.split(separator: ": ", maxSplits: 1).map(String.init)
      findings.append(Contract.Finding("bluetooth", bad, parts[0], parts.count > 1 ? parts[1] : nil))
    case .present:
      findings.append(Contract.Finding("bluetooth", "ok", "BlueZ answers", nil))
      if blueZ.adapterNames.isEmpty {
        findings.append(Contract.Finding("bluetooth", bad, "there is no adapter", "plug one in; see lsusb and dmesg"))
      }
      for name in blueZ.adapterNames {
        let isOn = blueZ.adapter(named: name)?.isPowered == true
        let bad = isUsed(name) ? "failed" : "warning"
        findings.append(
          Contract.Finding(
            name, isOn ? "ok" : bad, isOn ? "the adapter is switched on" : "the adapter is switched off",
            isOn ? nil : "bluetoothctl power on"))
      }
    }
    return findings
      + RadioSwitch.all().filter { $0.isBlocked }.map {
        Contract.Finding(
          $0.name, bad, $0.isHard ? "a switch of the machine blocks it" : "it is blocked by software",
          $0.isHard ? "find the switch, or the BIOS setting" : "rfkill unblock bluetooth")
      }
  }

  /// Whether a link goes over this adapter.
  private func isUsed(_ adapter: String) -> Bool {
    board.states.flatMap(\.device.ports).contains { if case .ble(let target) = $0.url { target.adapter == adapter } else { false } }
  }

  private func caution(_ device: Device) -> [Contract.Finding] {
    device.caution.map { [Contract.Finding(device.name, "warning", $0, nil)] } ?? []
  }

  private func device(_ state: DeviceState) -> [Contract.Finding] {
    if state.device.ports.isEmpty {
      // What it is for works as long as it has something to show.
      let isOfUse = state.slots.contains { if case .value = $0.content { true } else { false } }
      let grade = state.device.fault == nil ? "ok" : isOfUse ? "warning" : "failed"
      return caution(state.device) + [Contract.Finding(state.device.name, grade, state.device.fault ?? state.word, nil)]
    }
    return caution(state.device)
      + state.device.ports.map { port in
        let subject = "\(state.device.name) \(port.url)"
        let link = port.contract
        guard port.isUp else {
          if state.device.disconnection.isInForce, state.device.fault == nil {
            return Contract.Finding(subject, "ok", link.reason ?? link.state, nil)
          }
          // What is wrong with the device itself matters more than its link.
          let fault = state.device.fault.map { "\($0); " } ?? ""
          return Contract.Finding(subject, "failed", "\(fault)\(link.state)\(link.reason.map { ": \($0)" } ?? "")", Self.remedy(port.url))
        }
        return Contract.Finding(subject, state.device.fault == nil ? "ok" : "failed", state.device.fault ?? "up, \(state.word)", nil)
      }
  }
}

extension Doctor {
  /// What to look at where a link is down.
  private nonisolated static func remedy(_ url: LinkURL) -> String {
    switch url {
    case .tcp: "switch the other side on and join its network; check host and port in the configuration"
    case .serial: "plug it in and switch it on; vehiclectl scan serial lists the ports there are"
    case .ble: "bring it near and switch it on, and close other apps that hold it; vehiclectl scan ble tells what is heard"
    case .listening: "nothing here: the other side comes by itself"
    case .replay: "check the file's path in the configuration"
    }
  }
}

/// The radio switches of the kernel. Facts: its Documentation/ABI/stable/sysfs-class-rfkill.
private struct RadioSwitch {
  let name: String
  let isHard: Bool
  let isBlocked: Bool

  /// Those of Bluetooth.
  static func all() -> [RadioSwitch] {
    Files.list("/sys/class/rfkill").compactMap { entry in
      let read = { (file: String) in
        (try? Files.contents(of: "/sys/class/rfkill/\(entry)/\(file)", limit: 256)).map {
          String(decoding: $0.prefix { $0 > 0x20 }, as: UTF8.self)
        }
      }
      guard read("type") == "bluetooth" else { return nil }
      let isHard = read("hard") == "1"
      return RadioSwitch(name: read("name") ?? entry, isHard: isHard, isBlocked: isHard || read("soft") == "1")
    }
  }
}
