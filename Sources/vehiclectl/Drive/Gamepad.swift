// A gamepad or wheel: an input device, read through its mapping.

import CEvdev

/// A gamepad or wheel.
protocol GameController: AnyObject {
  var name: String { get }
  /// Readable when there are events.
  var descriptor: Int32 { get }
  /// Whether all axes have been at rest once.
  var isArmed: Bool { get }
  /// The deflection of the stick, or of wheel and pedals.
  var deflection: Deflection { get }
  /// Processes pending events and returns button changes. Throws if the device was unplugged.
  func read() throws(Failure) -> [GamepadMapping.Press]
}

final class Gamepad: GameController {
  private let device: EventDevice
  private var mapping: GamepadMapping

  /// Opens the device at a path.
  init(path: String) throws(Failure) {
    device = try EventDevice(path: path)
    guard var mapping = GamepadMapping(axes: Self.axes(of: device), keys: Self.keys(of: device)) else {
      throw .other("cannot drive with \(path) (\(device.name)): no stick, and no wheel with pedals; use another device with --input")
    }
    for code in mapping.codes { mapping.setAxis(code, to: device.position(ofAxis: Int32(code))) }
    self.mapping = mapping
  }

  /// The first device suitable for driving.
  static func first(in directory: String = EventDevice.directory) throws(Failure) -> Gamepad {
    var refused: Failure?
    for name in EventDevice.names(in: directory) {
      do throws(Failure) { return try Gamepad(path: "\(directory)/\(name)") } catch {
        if case .noAccessToInput = error { refused = refused ?? error }  // a later device may be a gamepad
      }
    }
    throw refused ?? .other("no gamepad in \(directory); plug one in, or use --input \(directory)/event5")
  }

  var name: String { device.name }
  var descriptor: Int32 { device.descriptor }
  var isArmed: Bool { mapping.isArmed }
  var deflection: Deflection { mapping.deflection }

  func read() throws(Failure) -> [GamepadMapping.Press] {
    var presses: [GamepadMapping.Press] = []
    try device.read { type, code, value in
      switch type {
      case EV_ABS: mapping.setAxis(code, to: value)
      case EV_KEY where value == 1: if let press = mapping.pressed(code) { presses.append(press) }
      case EV_KEY where value == 0: if let press = mapping.released(code) { presses.append(press) }
      default: break
      }
    }
    return presses
  }

  private static func axes(of device: EventDevice) -> [Int: ClosedRange<Int>] {
    var axes: [Int: ClosedRange<Int>] = [:]
    for code in [ABS_X, ABS_Y, ABS_Z, ABS_RZ, ABS_WHEEL, ABS_GAS, ABS_BRAKE] { axes[Int(code)] = device.range(ofAxis: code) }
    return axes
  }

  private static func keys(of device: EventDevice) -> Swift.Set<Int> {
    Swift.Set([BTN_SOUTH, BTN_JOYSTICK].filter(device.has(key:)).map { Int($0) })
  }
}
