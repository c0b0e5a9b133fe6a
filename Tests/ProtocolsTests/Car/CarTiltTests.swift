import Testing

@testable import Protocols

/// The messages for tilts, and those that are never sent.
@Suite struct CarTiltTests {
  private static func angles(_ roll: Double, _ pitch: Double, _ yaw: Double = 0) -> String {
    let tilt = PhoneAttitude(roll: roll, pitch: pitch, yaw: yaw).tilt(neutral: .level, sensitivity: 1)
    return String(decoding: tilt.frame(.documented).dropFirst(7).dropLast(3), as: UTF8.self)
  }

  @Test(arguments: [
    (0.4, 0.2, "0.400000;0.200000;0.000000"), (0.4, -0.2, "0.400000;-0.200000;0.000000"), (-0.4, 0.2, "-0.400000;0.200000;0.000000"),
    (-0.4, 0.0, "-0.400000;0.000000;0.000000"), (-0.4, -0.0, "-0.400000;0.000000;0.000000"), (-0.0, -0.4, "0.000000;-0.400000;0.000000"),
    // Half of full speed backward and a fifth to the left: backward; the reverse: left.
    (-0.4, -0.1, "-0.400000;0.000000;0.000000"), (-0.1, -0.9, "0.000000;-0.900000;0.000000"),
    // A number that is printed as zero counts as zero.
    (-0.4, -4e-7, "-0.400000;0.000000;0.000000"), (-4e-7, -0.4, "0.000000;-0.400000;0.000000"),
    (-6e-7, -4e-7, "-0.000001;0.000000;0.000000"),
    (-0.4, -6e-7, "-0.400000;0.000000;0.000000"), (-4e-7, -4e-7, "0.000000;0.000000;0.000000"),
  ]) func `a tilt is valid in every quadrant`(_ roll: Double, _ pitch: Double, _ expected: String) {
    #expect(Self.angles(roll, pitch) == expected)
  }

  @Test func `the angle that is the larger fraction of full speed is kept`() {
    // 45° of roll and 80° of pitch are the same fraction; then backward is sent.
    #expect(CarTilt(PhoneAttitude(roll: -0.45, pitch: -0.8, yaw: 0)).pitch == 0)
    #expect(CarTilt(PhoneAttitude(roll: -0.45, pitch: -0.800002, yaw: 0)).roll == 0)
    #expect(CarTilt(PhoneAttitude(roll: -0.450002, pitch: -0.8, yaw: 0)).pitch == 0)
  }

  @Test func `roll and pitch are never both negative, and no zero is negative`() {
    var dice = OBDRobustnessTests.Dice(state: 99)
    func angle(_ limit: Double) -> Double {
      switch dice.below(6) {
      case 0: return -0.0
      case 1: return (Double(dice.below(5)) - 2) * 5e-7
      case 2: return dice.below(2) == 0 ? limit : -limit
      default: return (Double(dice.below(2_000_001)) / 1_000_000 - 1) * limit
      }
    }
    for _ in 0..<20_000 {
      let attitude = PhoneAttitude(roll: angle(.pi), pitch: angle(.pi / 2), yaw: angle(.pi))
      let neutral = PhoneAttitude(roll: angle(.pi), pitch: angle(.pi / 2), yaw: angle(.pi))
      let tilt = attitude.tilt(neutral: neutral, sensitivity: 0.67 + Double(dice.below(67)) / 100)
      #expect(tilt.roll >= 0 || tilt.pitch >= 0)
      #expect(abs(tilt.roll) <= 3_141_592 && abs(tilt.pitch) <= 1_570_796 && abs(tilt.yaw) <= 3_141_592)
      #expect(!String(decoding: tilt.frame(.asBuilt), as: UTF8.self).contains("-0.000000"))
    }
  }

  @Test func `neutral position and sensitivity are applied`() {
    let neutral = PhoneAttitude(roll: 0.2, pitch: -0.1, yaw: 3)
    let tilt = PhoneAttitude(roll: 0.5, pitch: 0.1, yaw: -3).tilt(neutral: neutral, sensitivity: 1.25)
    #expect(tilt.roll == 375_000 && tilt.pitch == 250_000)
    // The shorter turn from 3 to -3 is 0.28 rad, not -6 rad.
    #expect(tilt.yaw == 353_982)
    let steep = PhoneAttitude(roll: 3, pitch: 1.5, yaw: 0).tilt(neutral: .level, sensitivity: 1.33)
    #expect(steep.roll == 3_141_592 && steep.pitch == 1_570_796)
  }

  @Test(arguments: [
    (Double.nan, 0, 0, "roll"), (0, .infinity, 0, "pitch"), (0, 0, -.infinity, "yaw"), (3.15, 0, 0, "roll"), (-3.15, 0, 0, "roll"),
    (0, 1.58, 0, "pitch"), (0, -1.58, 0, "pitch"), (0, 0, 1e300, "yaw"),
  ]) func `an invalid angle is rejected with its name`(_ roll: Double, _ pitch: Double, _ yaw: Double, _ name: String) {
    #expect(PhoneAttitude(roll: roll, pitch: pitch, yaw: yaw).wrongArgument?.name == name)
    var rig = CarRig.ready()
    rig.give(.leaseBegan(deadline: 300 * .millisecond))
    rig.run(for: 200 * .millisecond)
    let id = rig.tilt(roll, pitch, yaw)
    guard case .invalid(argument: name, _)? = rig.error(id) else {
      Issue.record("\(String(describing: rig.error(id)))")
      return
    }
    // It does not refresh the deadman timer.
    rig.run(for: 100 * .millisecond)
    #expect(rig.lost == ["no setpoint for 300 ms"] && rig.tilts.isEmpty)
  }

  @Test func `rounded angles are accepted`() {
    #expect(PhoneAttitude(roll: 3.1416, pitch: -1.5708, yaw: -3.1416).wrongArgument == nil)
    #expect(Self.angles(3.1416, 1.5708, -3.1416) == "3.141592;1.570796;-3.141592")
  }
}
