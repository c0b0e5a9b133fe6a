// The findings of Diagnose: whether the dependencies of the devices are available, and how to fix what is not. Read-only.

import Glibc
import Protocols
import ServiceRuntime
import Varlink

@Loop final class Doctor: BlueZObserver {
  private let hub: DeviceHub
  private let blueZ: BlueZ
  private let nameService: NameService
  /// The names of the groups that own the serial ports, once they are looked up.
  private var groups: NameService.Answers?
  /// The state directory.
  private let directory: String
  private let finish: @Loop ([Contract.Finding]) -> Void
  private var isDone = false
  private lazy var timer = Timer { [weak self] _ in self?.conclude() }

  private static let timeout: Nanoseconds = 3 * .second

  /// Creates a doctor whose checks start with `begin`. `finish` is called once, with the findings.
  init(
    _ hub: DeviceHub, _ blueZ: BlueZ, _ nameService: NameService, directory: String, finish: @escaping @Loop ([Contract.Finding]) -> Void
  ) {
    self.hub = hub
    self.blueZ = blueZ
    self.nameService = nameService
    self.directory = directory
    self.finish = finish
  }

  func begin() {
    timer.set(Clock.monotonic() + Self.timeout)
    blueZ.add(self)
    nameService.find(Set(serialPaths.compactMap(Self.group))) { [weak self] answers in
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
    let bluetooth = bluetooth()
    let unavailable = Set(bluetooth.filter { $0.state == "failed" }.map(\.subject))
    finish(bluetooth + [disk()] + serialPorts() + hub.states.flatMap { device($0, unavailable: unavailable) })
  }

  // MARK: Disk

  /// Whether state can be stored.
  private func disk() -> Contract.Finding {
    // The directory may not exist yet: it is created with the first write.
    var path = directory
    var space = statvfs()
    while statvfs(path, &space) != 0 {
      guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
        return Contract.Finding(
          "disk", "failed", "\(directory): \(errnoMessage(errno))", "sudo install -d -o vehicled -g vehicled -m 700 \(directory)")
      }
      path = String(path[..<slash])
    }
    var state = stat()
    guard stat(path, &state) == 0, state.st_mode & S_IFMT == S_IFDIR else {
      return Contract.Finding(
        "disk", "failed", "\(path) is not a directory: state cannot be stored", "choose another with --state, or move the file away")
    }
    let isReadOnly = space.f_flag & UInt(ST_RDONLY) != 0
    let isWritable = access(path, W_OK) == 0
    return Self.disk(
      directory, free: UInt64(space.f_bavail) * UInt64(space.f_frsize), files: space.f_files == 0 ? nil : UInt64(space.f_favail),
      isReadOnly: isReadOnly, isWritable: isWritable)
  }

  /// Free bytes below which the disk counts as low (the state takes a few kilobytes, a recording more) and as full.
  private nonisolated static let (low, full): (UInt64, UInt64) = (100_000_000, 1_000_000)

  nonisolated static func disk(_ directory: String, free: UInt64, files: UInt64?, isReadOnly: Bool, isWritable: Bool) -> Contract.Finding {
    let megabytes = free / 1_000_000
    if isReadOnly {
      return Contract.Finding(
        "disk", "failed", "\(directory) is read-only: state cannot be stored", "check journalctl -k -p err, then mount -o remount,rw")
    }
    if !isWritable {
      return Contract.Finding("disk", "failed", "\(directory) is not writable by the daemon", "sudo chown -R vehicled: \(directory)")
    }
    if free < full || files == 0 {
      return Contract.Finding(
        "disk", "failed", "\(directory) is full: state cannot be stored", "free disk space; recordings are in \(directory)/recordings")
    }
    guard free >= low else {
      let remedy = "free disk space; recordings are in \(directory)/recordings"
      return Contract.Finding("disk", "warning", "\(directory): \(megabytes) MB free", remedy)
    }
    return Contract.Finding("disk", "ok", "\(directory): \(megabytes) MB free", nil)
  }

  // MARK: Serial ports

  /// The serial ports in the configuration.
  private var serialPaths: [String] {
    hub.states.flatMap(\.device.ports).compactMap { port in
      if case .serial(let path, _) = port.url.transport, path.hasPrefix("/dev/") { path } else { nil }
    }
  }

  /// The group that owns a port.
  private static func group(of path: String) -> NameService.Query? {
    var state = stat()
    return stat(path, &state) == 0 ? .groupName(state.st_gid) : nil
  }

  /// Why a port cannot be opened, and the remedy; nil if it can. Does not open it: opening resets some devices.
  private func problem(ofPort path: String) -> (text: String, remedy: String)? {
    var state = stat()
    guard stat(path, &state) == 0 else { return (errnoMessage(errno), "plug in the adapter; vehiclectl scan serial lists the ports") }
    guard access(path, R_OK | W_OK) == 0 else {
      if errno == EPERM { return ("the service may not use this device", Sandbox.remedy(forDevice: path)) }
      let group = if case .name(let name)? = groups?[.groupName(state.st_gid)] { name } else { "\(state.st_gid)" }
      return (
        "permission denied: the port belongs to group \(group)", "sudo usermod -aG \(group) vehicled && sudo systemctl restart vehicled"
      )
    }
    return nil
  }

  /// The ports that can be opened. A problem with any other port is reported with its link.
  private func serialPorts() -> [Contract.Finding] {
    serialPaths.filter { problem(ofPort: $0) == nil }.map { path in
      guard path.hasPrefix("/dev/serial/") else {
        return Contract.Finding(
          path, "warning", "accessible, but the name can change when devices are plugged in again, and ModemManager probes the port",
          "use the port's name in /dev/serial/by-id; see vehiclectl scan serial")
      }
      return Contract.Finding(path, "ok", "accessible", nil)
    }
  }

  private func bluetooth() -> [Contract.Finding] {
    var findings: [Contract.Finding] = []
    let isNeeded = hub.states.contains { $0.device.ports.contains { $0.url.scheme == "ble" } }
    guard isNeeded || blueZ.presence == .present else {
      return [Contract.Finding("bluetooth", "ok", "not available, and not needed by any device", nil)]
    }
    let severity = isNeeded ? "failed" : "warning"
    switch blueZ.presence {
    case .unknown: findings.append(Contract.Finding("bluetooth", severity, "BlueZ does not respond", "systemctl status bluetooth"))
    case .absent(let reason):
      // The remedy comes last; the cause may contain colons.
      let parts = reason.split(separator: ": ").map(String.init)
      let text = parts.count > 1 ? parts.dropLast().joined(separator: ": ") : reason
      findings.append(Contract.Finding("bluetooth", severity, text, parts.count > 1 ? parts.last : nil))
    case .present:
      findings.append(Contract.Finding("bluetooth", "ok", "BlueZ is running", nil))
      if blueZ.adapterNames.isEmpty {
        findings.append(Contract.Finding("bluetooth", severity, "no Bluetooth adapter", "plug one in; check lsusb and dmesg"))
      }
      for name in blueZ.adapterNames {
        let isOn = blueZ.adapter(named: name)?.isPowered == true
        let severity = isUsed(name) ? "failed" : "warning"
        findings.append(
          Contract.Finding(
            name, isOn ? "ok" : severity, isOn ? "adapter is powered on" : "adapter is powered off",
            isOn ? nil : "bluetoothctl power on"))
      }
    }
    return findings
      + RadioSwitch.all().filter { $0.isBlocked }.map {
        Contract.Finding(
          $0.name, severity, $0.isHard ? "blocked by a hardware switch" : "blocked by software (rfkill)",
          $0.isHard ? "turn on the wireless switch, or enable Bluetooth in the BIOS" : "rfkill unblock bluetooth")
      }
  }

  /// Whether a link uses this adapter.
  private func isUsed(_ adapter: String) -> Bool {
    hub.states.flatMap(\.device.ports).contains { if case .ble(let target) = $0.url { target.adapter == adapter } else { false } }
  }

  private func warning(_ device: Device) -> [Contract.Finding] {
    device.warning.map { [Contract.Finding(device.name, "warning", $0, nil)] } ?? []
  }

  /// The findings about a device. `unavailable` contains the adapters that do not work, or `bluetooth` if none does: these are reported
  /// once, not for each of their links.
  private func device(_ state: DeviceState, unavailable: Set<String>) -> [Contract.Finding] {
    if state.device.ports.isEmpty {
      // A device without links that has a fault still works in part while it has values.
      let hasValues = state.slots.contains { if case .value = $0.content { true } else { false } }
      let grade = state.device.fault == nil ? "ok" : hasValues ? "warning" : "failed"
      return warning(state.device) + [Contract.Finding(state.device.name, grade, state.device.fault ?? state.status, nil)]
    }
    return warning(state.device)
      + state.device.ports.enumerated().compactMap { index, port in
        // A fault concerns the whole device, so it is reported only with the first link.
        let fault = index == 0 ? state.device.fault : nil
        let subject = "\(state.device.name) \(port.url.readable)"
        let link = port.contract
        guard port.isUp else {
          if state.device.disconnectRequest.isInForce, fault == nil {
            return Contract.Finding(subject, "ok", link.reason ?? link.state, nil)
          }
          if case .ble(let target) = port.url, fault == nil, !unavailable.isDisjoint(with: ["bluetooth", target.adapter]) {
            return nil
          }
          if case .serial(let path, _) = port.url.transport, fault == nil, let problem = problem(ofPort: path) {
            return Contract.Finding(subject, "failed", "\(link.state): \(problem.text)", problem.remedy)
          }
          // If the device itself closed the link, the fault is the reason, and contains the remedy.
          let isReason = fault != nil && fault == link.reason
          // Any other fault comes first, because it matters more than the state of the link.
          let cause = isReason ? "" : fault.map { "\($0); " } ?? ""
          return Contract.Finding(
            subject, "failed", "\(cause)\(link.state)\(link.reason.map { ": \($0)" } ?? "")",
            isReason ? nil : port.role.remedy ?? Self.remedy(port.url))
        }
        // A vehicle that is not in use does not respond, which is no failure.
        if let fault, !Contract.Device.isNotInUse(state: state.status, fault: fault) {
          // The problem of the link can be the cause.
          return Contract.Finding(subject, "failed", ([fault] + (port.problem.map { [$0] } ?? [])).joined(separator: "; "), nil)
        }
        if let problem = port.problem { return Contract.Finding(subject, "warning", problem, nil) }
        return Contract.Finding(subject, "ok", "up, \(state.status)\(fault.map { ": \($0)" } ?? "")", nil)
      }
  }
}

extension Doctor {
  /// What to check if a link is down.
  private nonisolated static func remedy(_ url: LinkURL) -> String {
    switch url {
    case .tcp: "power on the device and join its network; check host and port in the configuration"
    case .serial: "plug in and power on the device; vehiclectl scan serial lists the ports"
    case .ble: "power on the device, bring it into range and close other apps that use it; vehiclectl scan ble lists devices in range"
    case .slcan(let carrier): remedy(carrier)
    case .can(let interface):
      "ip -details -statistics link show \(interface) shows its state and errors"
    case .listening: "none needed: the device connects by itself"
    case .replay: "check the file's path in the configuration"
    }
  }
}

/// The kernel's radio switches. Source: its Documentation/ABI/stable/sysfs-class-rfkill.
private struct RadioSwitch {
  let name: String
  let isHard: Bool
  let isBlocked: Bool

  /// The switches of Bluetooth radios.
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
