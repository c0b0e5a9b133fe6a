// Keyboards through evdev. Unlike a terminal, they report when a key is released. A key takes effect only once the terminal has received
// it, so keys typed in other windows do nothing. If one of the keyboards is unplugged, drive exits.

import CEvdev

/// Keyboards that report whether the keys of a direction are down.
protocol Keyboard: AnyObject {
  /// Readable when there are events.
  var descriptors: [Int32] { get }
  /// Whether a key of this direction is down.
  func isDown(_ direction: Steering.Direction) -> Bool
  /// Processes pending events. Throws if a keyboard was unplugged.
  func read() throws(Failure)
}

final class EventKeyboard: Keyboard {
  private let devices: [EventDevice]

  /// Opens the keyboards of this machine; nil if none can be read.
  init?(in directory: String = EventDevice.directory) {
    devices = EventDevice.names(in: directory).compactMap { name in
      guard let device = try? EventDevice(path: "\(directory)/\(name)") else { return nil }
      return [KEY_UP, KEY_DOWN, KEY_W, KEY_S].allSatisfy(device.has(key:)) ? device : nil
    }
    if devices.isEmpty { return nil }
  }

  var descriptors: [Int32] { devices.map(\.descriptor) }

  func isDown(_ direction: Steering.Direction) -> Bool {
    let keys =
      switch direction {
      case .forward: [KEY_UP, KEY_W]
      case .backward: [KEY_DOWN, KEY_S]
      case .left: [KEY_LEFT, KEY_A]
      case .right: [KEY_RIGHT, KEY_D]
      }
    return devices.contains { device in keys.contains(where: device.isDown(key:)) }
  }

  func read() throws(Failure) { for device in devices { try device.read { _, _, _ in } } }
}
