// What a client that calls Diagnose is told: whether what devices need is there, and how to mend what is not. Looks, and
// changes nothing.

import Glibc
import Protocols

@Loop final class Doctor: BlueZObserver {
  private let board: Board
  private let blueZ: BlueZ
  private let finish: @Loop ([Contract.Finding]) -> Void
  private var isDone = false
  private lazy var timer = Timer { [weak self] _ in self?.conclude() }

  private static let patience: Nanoseconds = 3 * .second

  /// Looks at everything once it has begun; `finish` is told once.
  init(_ board: Board, _ blueZ: BlueZ, finish: @escaping @Loop ([Contract.Finding]) -> Void) {
    self.board = board
    self.blueZ = blueZ
    self.finish = finish
  }

  func begin() {
    timer.set(Clock.monotonic() + Self.patience)
    blueZ.add(self)
    blueZChanged()
  }

  func cancel() {
    isDone = true
    timer.set(nil)
    blueZ.remove(self)
  }

  func blueZChanged() {
    if blueZ.presence != .unknown { conclude() }
  }

  private func conclude() {
    guard !isDone else { return }
    cancel()
    finish(bluetooth() + board.states.flatMap(device))
  }

  private func bluetooth() -> [Contract.Finding] {
    var findings: [Contract.Finding] = []
    let needsIt = board.states.contains { $0.device.ports.contains { $0.url.scheme == "ble" } }
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
        guard port.isUp else { return Contract.Finding(subject, "failed", "\(link.state)\(link.reason.map { ": \($0)" } ?? "")", nil) }
        return Contract.Finding(subject, state.device.fault == nil ? "ok" : "failed", state.device.fault ?? "up, \(state.word)", nil)
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
